"""The queues of a cluster as a tree: what each may have, has, borrows, lends and waits for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

from kubectl_fleet.cluster import Object, Snapshot
from kubectl_fleet.gpu import Pod, place, read_nodes, read_pods
from kubectl_fleet.kubeconfig import UserError
from kubectl_fleet.requests import RESOURCES, amounts_of, read
from kubectl_fleet.table import UNLIMITED, camel, rounded

_MISSING: Final = {
    "nodes": "how many GPUs there are is not known, and a share of memory counts as a whole GPU",
    "pods": "who holds what is not known",
    "queues": "quotas and limits are not known",
    "podgroups": "the queue of a pod is the one of its label",
    "events": "why a pod waits may be known to them only",
}
_MOST_QUEUES, _MOST_LEVELS = 5000, 32  # that are drawn; KAI is run with some hundred on four levels
SLACK: Final = 1e-6  # of a GPU, a millicore or a megabyte: the error of sums of fractions


@dataclass(slots=True)
class Share:
    """One resource of a queue; -1 is unlimited, and what its Queue leaves out is 0.

    `borrowed` is what it holds above its own quota. `lent` is what is guaranteed to it and not used
    while others hold more than theirs: what they hold beyond what their common parent has
    undivided, spread over those that have something left.
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
    """A queue; what it has in use and waiting is the sum of its leaves. `level` is 1 at the top."""

    name: str
    shares: dict[str, Share]
    parent: str | None = None
    level: int = 1
    children: list[str] = field(default_factory=list)
    pods: int = 0
    waiting_pods: int = 0

    def add(self, other: "Queue") -> None:
        """Add what the pods of another queue hold and wait for."""
        for resource, share in self.shares.items():
            share.in_use = rounded(share.in_use + other.shares[resource].in_use)
            share.waiting = rounded(share.waiting + other.shares[resource].waiting)
        self.pods += other.pods
        self.waiting_pods += other.waiting_pods

    def record(self) -> dict[str, Any]:
        """Return the JSON."""
        about = {"name": self.name, "parent": self.parent, "level": self.level}
        about |= {"pods": self.pods, "waitingPods": self.waiting_pods}
        return about | {resource: camel(asdict(share)) for resource, share in self.shares.items()}


class Usage:
    """Who holds what of a cluster, and who waits.

    What is in use is counted from pods that have a node and are not ended. Where not all pods may
    be listed, it is what KAI's queue controller writes into the status of the Queues.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = read_nodes(snapshot)
        self.pods = read_pods(snapshot, nodes)
        place(snapshot, nodes, self.pods)
        holding = {pod.node for pod in self.pods if pod.amounts["gpu"]}
        used = (n for n in nodes.values() if n.count or n.shared or n.name in holding)
        self.nodes = {node.name: node for node in sorted(used, key=lambda node: node.name)}
        self.queues = _tree(snapshot.all("queues"))
        named = self._by_pods()
        _fill(self.queues, _by_status(snapshot.all("queues")) if snapshot.partly else named)
        # What pods name and can't be seen here: the host's queues, for example.
        unseen = (
            [] if snapshot.partly and self.queues else sorted(named.keys() - self.queues.keys())
        )
        self.elsewhere = [named[name] for name in unseen]

    @property
    def shown(self) -> list[Pod]:
        """The pods that are shown."""
        return [pod for pod in self.pods if self.snapshot.shows(pod.namespace)]

    @cached_property
    def shown_on(self) -> dict[str | None, list[Pod]]:
        """The same by their node, None for those that wait."""
        pods: dict[str | None, list[Pod]] = defaultdict(list)
        for pod in self.shown:
            pods[pod.node].append(pod)
        return pods

    @property
    def notes(self) -> list[str]:
        """Sentences about what could not be read."""
        view = self.snapshot
        notes = [
            f"you may not list {kind}: {without}"
            for kind, without in _MISSING.items()
            if kind in view.forbidden
        ]
        if view.partly and "pods" in view.objects:
            source = "; what queues hold is what KAI says of them" if self.queues else ""
            notes.append(f"you may list pods of namespace {view.namespace} only{source}")
        if not view.schedules_here and any(pod.by_kai for pod in self.pods):
            notes.append(
                "KAI runs on the host and not here, and so do its queues: what they may hold, and"
                " who else is on a GPU, can't be seen from here; ask the platform's engineers"
            )
        elif not view.schedules_here:
            notes.append("no KAI runs here: there are no queues")
        return notes

    def _by_pods(self) -> dict[str, Queue]:
        """Return what pods that KAI schedules hold and wait for, by the queue that they name."""
        named: dict[str, Queue] = {}
        for pod in self.pods:
            if not pod.by_kai or pod.queue is None or (pod.ending and not pod.node):
                continue
            unknown = {resource: Share(UNLIMITED, UNLIMITED) for resource in RESOURCES}
            queue = named.setdefault(pod.queue, Queue(pod.queue, unknown))
            queue.pods += pod.node is not None
            queue.waiting_pods += pod.node is None
            for resource, share in queue.shares.items():
                held, waiting = (
                    (pod.amounts[resource], 0) if pod.node else (0, pod.amounts[resource])
                )
                share.in_use = rounded(share.in_use + held)
                share.waiting = rounded(share.waiting + waiting)
        return named

    @cached_property
    def leaves(self) -> list[str]:
        """The names of the queues that pods may name, sorted."""
        return sorted(queue.name for queue in self.queues.values() if not queue.children)

    @cached_property
    def leaves_below(self) -> dict[str, list[str]]:
        """The same under each queue."""
        below: dict[str, list[str]] = defaultdict(list)
        for leaf in self.leaves:
            for queue in self.upwards(leaf):
                below[queue.name].append(leaf)
        return below

    def upwards(self, name: str | None) -> Iterator[Queue]:
        """Return a queue and those above it, nearest first."""
        while name is not None and name in self.queues:
            yield self.queues[name]
            name = self.queues[name].parent


def _tree(items: list[Object]) -> dict[str, Queue]:
    """Return the queues by name, parents before their children.

    Queues below a parent that is absent, or in a ring, are left out: KAI drops them too. Raises
    UserError for more queues, or levels of them, than are drawn.
    """
    if len(items) > _MOST_QUEUES:
        raise UserError(f"the cluster has {len(items)} queues; at most {_MOST_QUEUES} are shown")
    below: dict[str | None, list[Object]] = defaultdict(list)
    for item in sorted(items, key=_name):
        below[item["spec"].get("parentQueue") or None].append(item)
    queues: dict[str, Queue] = {}
    pending = below[None][::-1]
    while pending:
        item = pending.pop()
        name, parent = _name(item), item["spec"].get("parentQueue") or None
        queues[name] = Queue(
            name,
            _shares(item["spec"].get("resources") or {}),
            parent,
            queues[parent].level + 1 if parent else 1,
            [_name(child) for child in below[name]],
        )
        if queues[name].level > _MOST_LEVELS:
            raise UserError(
                f"queue {name} is on level {queues[name].level} of the tree; at most"
                f" {_MOST_LEVELS} levels are shown"
            )
        pending += below[name][::-1]
    return queues


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _shares(resources: Mapping[str, Mapping[str, float]]) -> dict[str, Share]:
    shares = {}
    for resource in RESOURCES:
        written = resources.get(resource) or {}
        amounts = (float(written.get(key) or 0) for key in ("quota", "limit", "overQuotaWeight"))
        shares[resource] = Share(*amounts)
    return shares


def _by_status(items: list[Object]) -> dict[str, Queue]:
    """Return what the leaves hold and wait for by the status of their Queues.

    `requested` is of all pods that are not ended, so what waits is the rest of it. From v0.7 to
    v0.17 a fraction of several devices counts as one there, MIG devices not at all, and a share of
    memory waits for no GPU (`pkg/podgroupcontroller/controllers/resources/fraction.go`).
    """
    parents = {item["spec"].get("parentQueue") for item in items}
    leaves: dict[str, Queue] = {}
    for item in items:
        status, queue = item.get("status") or {}, Queue(_name(item), _shares({}))
        held, requested = (amounts_of(read(status.get(key))) for key in ("allocated", "requested"))
        for resource, share in queue.shares.items():
            share.in_use = held[resource]
            share.waiting = rounded(max(0.0, requested[resource] - held[resource]))
        if queue.name not in parents:
            leaves[queue.name] = queue
    return leaves


def _fill(queues: dict[str, Queue], leaves: Mapping[str, Queue]) -> None:
    """Write what is held, waited for and lent into the queues, which stand parents first."""
    for queue in list(queues.values())[::-1]:
        if queue.name in leaves:
            queue.add(leaves[queue.name])
        if queue.parent:
            queues[queue.parent].add(queue)
        for share in queue.shares.values():
            if share.quota != UNLIMITED:
                share.borrowed = rounded(max(0.0, share.in_use - share.quota))
    tops = [queue.name for queue in queues.values() if queue.parent is None]
    groups = [(None, tops), *((queue, queue.children) for queue in queues.values())]
    for parent, names in groups:
        for resource in RESOURCES:
            above = parent.shares[resource] if parent else Share()
            shares = [queues[name].shares[resource] for name in names]
            undivided = max(0.0, above.quota - sum(max(0.0, share.quota) for share in shares))
            beyond = above.lent + sum(share.borrowed for share in shares) - undivided
            unused = [max(0.0, share.quota - share.in_use) for share in shares]
            part = min(1.0, max(0.0, beyond) / sum(unused)) if sum(unused) else 0.0
            for share, left in zip(shares, unused, strict=True):
                share.lent = rounded(left * part)
