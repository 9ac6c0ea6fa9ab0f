"""The queues of a cluster as a tree: what each may have, has, borrows, lends and waits for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from kai_fleet.fleet.amounts import Amounts, rounded
from kai_fleet.fleet.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    Resource,
    shares,
)
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import PodUse, in_queue_units, numbers, whole_gpus

_MOST: Final = 1e30  # of any resource, so that no sum is infinite


@dataclass(frozen=True, slots=True)
class ShareUse:
    """One resource of a queue, in the units of `Amounts`; -1 is unlimited.

    `borrowed` is what the queue holds above its own quota. `lent` is what is guaranteed to it and
    not used by it while others hold more than theirs: what they hold beyond what their common
    parent has undivided, spread over those that have something left.
    """

    quota: float = 0.0
    limit: float = UNLIMITED
    weight: float = 0.0
    in_use: float = 0.0
    waiting: float = 0.0
    borrowed: float = 0.0
    lent: float = 0.0

    def record(self) -> dict[str, float]:
        """For JSON."""
        renamed = {"weight": "overQuotaWeight", "in_use": "inUse"}
        return {renamed.get(name, name): amount for name, amount in asdict(self).items()}


@dataclass(frozen=True)
class QueueUse:
    """A queue; what it has in use and waiting is the sum of its leaves.

    `level` is 1 at the top. `pods` and `waiting_pods` count those of its leaves.
    """

    name: str
    parent: str | None
    level: int
    children: tuple[str, ...] = ()
    shares: Mapping[Resource, ShareUse] = field(default_factory=dict)
    pods: int = 0
    waiting_pods: int = 0
    display_name: str = ""

    @property
    def leaf(self) -> bool:
        """Whether pods may name it."""
        return not self.children

    def share(self, resource: Resource) -> ShareUse:
        """Its share of one resource."""
        return self.shares[resource]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "parent": self.parent,
            "level": self.level,
            "pods": self.pods,
            "waitingPods": self.waiting_pods,
            **{resource: share.record() for resource, share in self.shares.items()},
        }


@dataclass(frozen=True)
class QueuePods:
    """What the pods of one queue hold and wait for."""

    in_use: Amounts = field(default_factory=Amounts)
    waiting: Amounts = field(default_factory=Amounts)
    pods: int = 0
    waiting_pods: int = 0

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """The sum of any number of queues."""
        return cls(
            Amounts.total(part.in_use for part in parts),
            Amounts.total(part.waiting for part in parts),
            sum(part.pods for part in parts),
            sum(part.waiting_pods for part in parts),
        )


def by_queue(pods: Iterable[PodUse]) -> dict[str, QueuePods]:
    """What pods that KAI schedules hold and wait for, by the queue that they name.

    A pod that never runs waits for nothing: no GPU that comes free is for it.
    """
    parted: dict[str, tuple[list[Amounts], list[Amounts]]] = defaultdict(lambda: ([], []))
    for pod in pods:
        if (
            pod.scheduled_by_kai
            and pod.queue is not None
            and not (pod.waits and (pod.ending or pod.never))
        ):
            parted[pod.queue][pod.waits].append(pod.amounts)
    return {
        name: QueuePods(Amounts.total(held), Amounts.total(waiting), len(held), len(waiting))
        for name, (held, waiting) in parted.items()
    }


def by_status(items: Sequence[KubeObject]) -> dict[str, QueuePods]:
    """What the leaves of a tree hold and wait for, as KAI's queue controller writes it on Queues.

    For whoever may list those and not all pods; how many pods there are is not in a status.
    `requested` is of all pods that are not ended, so what waits is the rest of it. Of a share of
    GPU memory it names the memory only: that waits for no GPU here.
    """
    parents = {item.spec.get("parentQueue") for item in items}
    leaves: dict[str, QueuePods] = {}
    for item in items:
        status = item.status
        if item.name not in parents:
            held, requested = (
                in_queue_units(requests, whole_gpus(requests))
                for requests in map(numbers, (status.get("allocated"), status.get("requested")))
            )
            left = (rounded(max(0.0, requested.of(it) - held.of(it))) for it in RESOURCES)
            leaves[item.name] = QueuePods(held, Amounts(*left))
    return leaves


def queue_of(item: KubeObject) -> DeclaredQueue:
    """A Queue object, as the rules know queues."""
    parent, spec = item.spec.get("parentQueue") or None, item.spec
    return DeclaredQueue(item.name, parent, shares(spec.get("resources")), spec=spec)


def tree(index: QueueIndex, pods: Mapping[str, QueuePods] | None = None) -> dict[str, QueueUse]:
    """Every queue by name, parents before their children.

    Queues under a parent that is absent, or in a ring, are not in it: KAI drops them too.
    """
    tops = sorted(queue.name for queue in index.by_name.values() if queue.parent is None)
    below: dict[str | None, list[str]] = {None: tops}
    order: list[str] = []
    todo = tops[::-1]
    while todo:
        name = todo.pop()
        order.append(name)
        # Whoever answers for an API server may name two queues alike.
        own = (it.name for it in index.children.get(name, ()) if index.by_name[it.name] is it)
        below[name] = sorted(own)
        todo += reversed(below[name])
    sums: dict[str, QueuePods] = {}
    for name in reversed(order):
        of_name = (pods or {}).get(name, QueuePods())
        sums[name] = QueuePods.total([of_name, *(sums[child] for child in below[name])])
    uses = {
        resource: _with_lent(
            {name: _share(index.by_name[name], sums[name], resource) for name in order}, below
        )
        for resource in RESOURCES
    }
    queues: dict[str, QueueUse] = {}
    for name in order:
        declared = index.by_name[name]
        queues[name] = QueueUse(
            name=name,
            parent=declared.parent,
            level=queues[declared.parent].level + 1 if declared.parent else 1,
            children=tuple(below[name]),
            shares={resource: uses[resource][name] for resource in RESOURCES},
            pods=sums[name].pods,
            waiting_pods=sums[name].waiting_pods,
            display_name=declared.spec.get("displayName") or "",
        )
    return queues


def upwards(queues: Mapping[str, QueueUse], name: str | None) -> Iterator[QueueUse]:
    """A queue and those above it."""
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent


def _share(queue: DeclaredQueue, pods: QueuePods, resource: Resource) -> ShareUse:
    """What is not written is 0, a limit too: then nothing may run (Q2)."""
    written = queue.shares.get(resource, QueueShare(limit=None, weight=0.0))
    quota, in_use = _amount(written.quota), pods.in_use.of(resource)
    return ShareUse(
        quota=quota,
        limit=_amount(written.limit),
        weight=_amount(written.weight),
        in_use=in_use,
        waiting=pods.waiting.of(resource),
        borrowed=0.0 if quota == UNLIMITED else rounded(max(0.0, in_use - quota)),
    )


def _amount(value: float | None) -> float:
    """A number that can be added up and told as JSON, whatever a tenant writes."""
    return max(-_MOST, min(value or 0.0, _MOST))


def _with_lent(
    shares: Mapping[str, ShareUse], below: Mapping[str | None, Sequence[str]]
) -> dict[str, ShareUse]:
    """From the top down: what a queue lends, those below it lend with it."""
    lending: dict[str, ShareUse] = {}
    for parent in (None, *shares):
        group = [shares[name] for name in below.get(parent, ())]
        above = lending[parent] if parent is not None else ShareUse()
        guaranteed = sum(max(0.0, share.quota) for share in group)
        undivided = max(0.0, above.quota - guaranteed)
        wanted = above.lent + sum(share.borrowed for share in group) - undivided
        unused = [max(0.0, share.quota - share.in_use) for share in group]
        part = min(1.0, max(0.0, wanted) / sum(unused)) if sum(unused) else 0.0
        for name, left in zip(below.get(parent, ()), unused, strict=True):
            lending[name] = replace(shares[name], lent=rounded(left * part))
    return lending
