"""The queues of a cluster as a tree: quota, limit, use, what is borrowed, lent and waited for."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kai_usage.amounts import RESOURCES, UNLIMITED, Resource, rounded
from kai_usage.objects import Object, name_of, spec_of, status_of
from kai_usage.pods import Pod
from kai_usage.requests import amounts_of, read_resources
from kai_usage.trees import levels

_MOST = 1e30  # a larger amount, which a tenant may write, would make sums infinite


@dataclass(slots=True)
class Share:
    """A queue's share of one resource, in the units of `amounts`: GPUs, millicores, 10^6 bytes.

    A quota or a limit of -1 is unlimited; what its Queue does not say is 0.

    Attributes:
        over_quota_weight: The weight, without unit, by which siblings share what is beyond quotas.
        in_use: What pods with a node hold.
        waiting: What pods without a node ask for.
        borrowed: What is in use beyond the quota, as the function `borrowed` counts it.
        lent: The part of the unused quota that other queues have borrowed. Siblings lend together
            what they borrow and what their parent lends, less the part of the parent's quota beyond
            the sum of theirs. Each lends in proportion to its unused quota, and no more than that.
    """

    quota: float = 0.0
    limit: float = 0.0
    over_quota_weight: float = 0.0
    in_use: float = 0.0
    waiting: float = 0.0
    borrowed: float = 0.0
    lent: float = 0.0


@dataclass
class Queue:
    """A queue. After `add_use` it counts what it and all queues below it hold and wait for.

    A pod that names a queue with children counts in that queue itself. `shares` has each of
    `RESOURCES`. `parent` is None at the top, where `level` is 1. `children` are names, sorted; a
    queue without any is a leaf. `display_name` is "" without one. The numbers of pods are of KAI's
    pods alone, and stay 0 if use is counted from the status of Queues.
    """

    name: str
    shares: dict[Resource, Share]
    parent: str | None = None
    level: int = 1
    children: list[str] = field(default_factory=list)
    display_name: str = ""
    pods_with_node: int = 0
    waiting_pods: int = 0

    def add(self, other: "Queue") -> None:
        """Add the pods of another queue to this one, and what they hold and wait for.

        `borrowed` and `lent` stay as they are.
        """
        for resource, share in self.shares.items():
            share.in_use = rounded(share.in_use + other.shares[resource].in_use)
            share.waiting = rounded(share.waiting + other.shares[resource].waiting)
        self.pods_with_node += other.pods_with_node
        self.waiting_pods += other.waiting_pods


Queues = Mapping[str, Queue]  # by name, parents before their children


def read_queues(items: Iterable[Object]) -> dict[str, Queue]:
    """The queues by name in the order of the drawn tree; nothing is in use yet.

    Each queue is before its children, all below it come before its next sibling, and siblings are
    sorted by name. Of several queues with one name the first counts. Queues below a parent that is
    absent, or in a ring, are left out: KAI drops them, too.

    Raises LookupError, ValueError, TypeError, AttributeError or OverflowError for a malformed
    Queue.
    """
    by_name: dict[str, Object] = {}
    for item in items:
        by_name.setdefault(name_of(item), item)
    parents = {name: _parent(item) for name, item in by_name.items()}
    queues: dict[str, Queue] = {}
    for name, level in levels(parents).items():
        spec = spec_of(by_name[name])
        parent = parents[name]
        if parent is not None:
            queues[parent].children.append(name)
        queues[name] = Queue(
            name=name,
            shares=_shares(spec.get("resources") or {}),
            parent=parent,
            level=level,
            display_name=spec.get("displayName") or "",
        )
    return queues


def _parent(item: Object) -> str | None:
    """The name of a Queue's parent; None at the top, where it is absent or ""."""
    return spec_of(item).get("parentQueue") or None


def _shares(resources: Object) -> dict[Resource, Share]:
    """The shares of all resources that a Queue's `spec.resources` says, with nothing in use.

    0 for what it does not say. Raises ValueError, TypeError, AttributeError or OverflowError if it
    is malformed.
    """
    shares: dict[Resource, Share] = {}
    for resource in RESOURCES:
        amounts = resources.get(resource) or {}
        shares[resource] = Share(
            quota=_amount(amounts.get("quota")),
            limit=_amount(amounts.get("limit")),
            over_quota_weight=_amount(amounts.get("overQuotaWeight")),
        )
    return shares


def _amount(number: float | str | None) -> float:
    """An amount from -10^30 to 10^30, so that sums stay finite.

    0 if it is not written, empty, NaN or infinite; a bool is 0 or 1. Raises ValueError for a text
    that is no number, TypeError for a list or a mapping with entries, OverflowError for a whole
    number above 10^308.
    """
    amount = float(number or 0.0)
    if not math.isfinite(amount):
        return 0.0
    return max(-_MOST, min(amount, _MOST))


def count_pods(pods: Iterable[Pod]) -> dict[str, Queue]:
    """The queues that pods of KAI name, with what these pods hold and wait for.

    They are without tree: `parent` is None, `level` is 1, and quotas and limits are unlimited,
    because pods say nothing about them. `borrowed` and `lent` stay 0. The order is that of `pods`,
    which have not ended. A pod that is being deleted before it has a node counts in none, nor does
    one whose queue is None, as with a label without a value.
    """
    queues: dict[str, Queue] = {}
    for pod in pods:
        if not pod.by_kai or pod.queue is None:
            continue
        if pod.is_being_deleted and pod.waits:
            continue
        if pod.queue not in queues:
            shares = {resource: Share(UNLIMITED, UNLIMITED) for resource in RESOURCES}
            queues[pod.queue] = Queue(pod.queue, shares)
        queue = queues[pod.queue]
        if pod.waits:
            queue.waiting_pods += 1
            for resource, share in queue.shares.items():
                share.waiting = rounded(share.waiting + pod.amounts[resource])
        else:
            queue.pods_with_node += 1
            for resource, share in queue.shares.items():
                share.in_use = rounded(share.in_use + pod.amounts[resource])
    return queues


def count_status(items: Sequence[Object]) -> dict[str, Queue]:
    """The leaf queues, with what they hold and wait for by the status of their Queues.

    They are without tree and numbers of pods, and their quotas and limits are 0, which means
    nothing. For whoever may not list all pods. A leaf is a Queue that no other names as its parent,
    also one that `read_queues` leaves out. Of several Queues with one name the last counts.
    `requested` is of all pods that have not ended, so what waits is the rest of it. From v0.7 to
    v0.17 a fraction of several devices counts as one there, MIG devices not at all, and a share of
    memory waits for no GPU (`pkg/podgroupcontroller/controllers/resources/fraction.go`).
    """
    parents = {_parent(item) for item in items}
    leaves: dict[str, Queue] = {}
    for item in items:
        name = name_of(item)
        if name in parents:
            continue
        status = status_of(item)
        held = amounts_of(read_resources(status.get("allocated")))
        requested = amounts_of(read_resources(status.get("requested")))
        leaves[name] = Queue(name, _shares({}))
        for resource, share in leaves[name].shares.items():
            share.in_use = held[resource]
            share.waiting = rounded(max(0.0, requested[resource] - held[resource]))
    return leaves


def add_use(queues: Queues, uses: Queues) -> None:
    """Fill in numbers of pods, `in_use`, `waiting`, `borrowed` and `lent` of all queues.

    `queues` are as `read_queues` gives them, and are changed in place. `uses` are the queues that
    hold something themselves, as `count_pods` and `count_status` give them; those that are not in
    `queues` are left out. Call it once: uses are added to the queues.
    """
    for queue in reversed(list(queues.values())):  # children before their parents
        if queue.name in uses:
            queue.add(uses[queue.name])
        if queue.parent:
            queues[queue.parent].add(queue)
        for share in queue.shares.values():
            share.borrowed = borrowed(share.in_use, share.quota)
    _lend(queues)


def borrowed(in_use: float, quota: float) -> float:
    """What is in use beyond the quota; 0 if the quota is unlimited, all if it is negative."""
    if quota == UNLIMITED:
        return 0.0
    return rounded(max(0.0, in_use - max(0.0, quota)))


def _lend(queues: Queues) -> None:
    """Fill in `lent` of all queues in place, from the top down, as `Share` says.

    `in_use` and `borrowed` are filled in before; parents come before their children. Queues at the
    top count as siblings below a parent that has no quota and lends nothing.
    """
    tops = [queue.name for queue in queues.values() if queue.parent is None]
    root = Queue("", _shares({}), children=tops)
    for parent in (root, *queues.values()):
        for resource in RESOURCES:
            siblings = [queues[name].shares[resource] for name in parent.children]
            _lend_among(siblings, parent.shares[resource])


def _lend_among(siblings: Sequence[Share], parent: Share) -> None:
    """Set `lent` of siblings: what they borrow and their parent lends, spread over unused quotas.

    The part by which the parent's quota exceeds the sum of theirs is lent first. They lend no more
    than is unused; one with an unlimited quota lends nothing, and counts as 0 in that sum. An
    unlimited quota of the parent has no such part. If no quota is unused, `lent` stays as it is.
    """
    quotas = sum(max(0.0, share.quota) for share in siblings)
    undivided = max(0.0, parent.quota - quotas)
    all_borrowed = sum(share.borrowed for share in siblings)
    to_lend = max(0.0, parent.lent + all_borrowed - undivided)
    unused = [max(0.0, share.quota - share.in_use) for share in siblings]
    all_unused = sum(unused)
    if not all_unused:
        return
    lent_fraction = min(1.0, to_lend / all_unused)
    for share, unused_quota in zip(siblings, unused, strict=True):
        share.lent = rounded(unused_quota * lent_fraction)


def upwards(queues: Queues, name: str | None) -> Iterator[Queue]:
    """A queue and those above it, nearest first; nothing for None or a name that no queue has.

    It ends because `read_queues` leaves out rings.
    """
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent
