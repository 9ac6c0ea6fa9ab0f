"""The queues of a cluster as a tree: what each may have, has, borrows, lends and waits for."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.usage.amounts import RESOURCES, UNLIMITED, Amounts, Resource, rounded
from kubectl_fleet.usage.pods import PodUse, in_queue_units, numbers, whole_gpus

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


def tree(
    items: Sequence[KubeObject], pods: Mapping[str, QueuePods] | None = None
) -> dict[str, QueueUse]:
    """Every queue by name, parents before their children; `items` are Queue objects.

    Queues under a parent that is absent, or in a ring, are not in it: KAI drops them too.
    """
    specs = {item.name: item.spec for item in items}
    children: dict[str | None, list[str]] = defaultdict(list)
    for name in sorted(specs):
        children[specs[name].get("parentQueue") or None].append(name)
    order = list(_downwards(children))
    sums: dict[str, QueuePods] = {}
    for name in reversed(order):
        own = (pods or {}).get(name, QueuePods())
        sums[name] = _sum([own, *(sums[child] for child in children[name])])
    shares = {
        resource: _with_lent(
            {name: _share(specs[name], sums[name], resource) for name in order}, children
        )
        for resource in RESOURCES
    }
    queues: dict[str, QueueUse] = {}
    for name in order:
        parent = specs[name].get("parentQueue") or None
        queues[name] = QueueUse(
            name=name,
            parent=parent,
            level=queues[parent].level + 1 if parent else 1,
            children=tuple(children[name]),
            shares={resource: shares[resource][name] for resource in RESOURCES},
            pods=sums[name].pods,
            waiting_pods=sums[name].waiting_pods,
            display_name=specs[name].get("displayName") or "",
        )
    return queues


def upwards(queues: Mapping[str, QueueUse], name: str | None) -> Iterator[QueueUse]:
    """A queue and those above it."""
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent


def _downwards(children: Mapping[str | None, Sequence[str]]) -> Iterator[str]:
    """Every queue that hangs on the top level, each before those below it."""
    todo = list(reversed(children.get(None, ())))
    while todo:
        name = todo.pop()
        yield name
        todo += reversed(children.get(name, ()))


def _sum(parts: Sequence[QueuePods]) -> QueuePods:
    return QueuePods(
        Amounts.total(part.in_use for part in parts),
        Amounts.total(part.waiting for part in parts),
        sum(part.pods for part in parts),
        sum(part.waiting_pods for part in parts),
    )


def _share(spec: Mapping[str, Any], pods: QueuePods, resource: Resource) -> ShareUse:
    """What is not written is 0, a limit too: then nothing may run (Q2)."""
    written = (spec.get("resources") or {}).get(resource) or {}
    quota, in_use = _amount(written.get("quota")), pods.in_use.of(resource)
    return ShareUse(
        quota=quota,
        limit=_amount(written.get("limit")),
        weight=_amount(written.get("overQuotaWeight")),
        in_use=in_use,
        waiting=pods.waiting.of(resource),
        borrowed=0.0 if quota == UNLIMITED else rounded(max(0.0, in_use - quota)),
    )


def _amount(value: Any) -> float:
    """A number that can be added up and told as JSON, whatever a tenant writes."""
    number = float(value or 0)
    return 0.0 if math.isnan(number) else max(-_MOST, min(number, _MOST))


def _with_lent(
    shares: Mapping[str, ShareUse], children: Mapping[str | None, Sequence[str]]
) -> dict[str, ShareUse]:
    """From the top down: what a queue lends, those below it lend with it."""
    lending: dict[str, ShareUse] = {}
    for parent in (None, *_downwards(children)):
        group = [shares[name] for name in children.get(parent, ())]
        above = lending[parent] if parent is not None else ShareUse()
        guaranteed = sum(max(0.0, share.quota) for share in group)
        undivided = max(0.0, above.quota - guaranteed)
        wanted = above.lent + sum(share.borrowed for share in group) - undivided
        unused = [max(0.0, share.quota - share.in_use) for share in group]
        part = min(1.0, max(0.0, wanted) / sum(unused)) if sum(unused) else 0.0
        for name, left in zip(children.get(parent, ()), unused, strict=True):
            lending[name] = replace(shares[name], lent=rounded(left * part))
    return lending
