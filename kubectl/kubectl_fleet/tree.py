"""The queues of a cluster as a tree: quota, limit, use, what is borrowed, lent and waited for.

Amounts are GPUs, millicores of CPU, and memory in 10^6 bytes, as KAI counts them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Final

from kubectl_fleet.cluster import Object, Snapshot
from kubectl_fleet.gpu import Node, Pod, add_pods_to_nodes, read_nodes, read_pods
from kubectl_fleet.kubeconfig import UserError
from kubectl_fleet.requests import RESOURCES, amounts_of, read
from kubectl_fleet.table import UNLIMITED, camel, rounded

# What is not known if a list is forbidden.
_MISSING: Final = {
    "nodes": "how many GPUs there are is not known, and a share of memory counts as a whole GPU",
    "pods": "who holds what is not known",
    "queues": "quotas and limits are not known",
    "podgroups": "the queue of a pod is the one of its label",
    "events": "why a pod waits may be known to them only",
}
# Larger trees are refused. KAI is run with some hundred queues on four levels.
_MAX_QUEUES: Final = 5000
_MAX_LEVELS: Final = 32
SLACK: Final = 1e-6  # of a GPU, a millicore or a megabyte: the error of sums of fractions


@dataclass(slots=True)
class Share:
    """A queue's share of one resource. -1 is unlimited; what its Queue does not say is 0.

    Attributes:
        in_use: What pods with a node hold.
        waiting: What pods without a node ask for.
        borrowed: What is in use beyond the quota.
        lent: The part of the unused quota that other queues have borrowed. What siblings borrow
            beyond what their parent has undivided, and what the parent lends itself, is spread
            over the siblings with unused quota, in proportion to it.
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
    """A queue. Its pods, and what is in use and waiting, are sums over its leaves.

    `shares` are by resource. `level` is 1 at the top. `children` are names.
    """

    name: str
    shares: dict[str, Share]
    parent: str | None = None
    level: int = 1
    children: list[str] = field(default_factory=list)
    pods: int = 0
    waiting_pods: int = 0

    def add(self, other: "Queue") -> None:
        """Add the pods of another queue, and what they hold and wait for."""
        for resource, share in self.shares.items():
            share.in_use = rounded(share.in_use + other.shares[resource].in_use)
            share.waiting = rounded(share.waiting + other.shares[resource].waiting)
        self.pods += other.pods
        self.waiting_pods += other.waiting_pods

    def record(self) -> dict[str, object]:
        """The JSON, with a key for each resource."""
        record: dict[str, object] = {
            "name": self.name,
            "parent": self.parent,
            "level": self.level,
            "pods": self.pods,
            "waitingPods": self.waiting_pods,
        }
        for resource, share in self.shares.items():
            record[resource] = camel(asdict(share))
        return record


class Usage:
    """Who holds what of a cluster, and who waits.

    What is in use is counted from pods that have a node and have not ended. If not all pods may be
    listed, it is what KAI's queue controller writes into the status of the Queues.

    Attributes:
        pods: Pods that have not ended, shown or not.
        nodes: Nodes with GPUs by name, sorted.
        queues: Queues by name, parents before their children.
        elsewhere: Queues that pods name and that cannot be seen here, such as the host's. Nothing
            is known of their quotas.

    Raises:
        UserError: The tree has more queues or levels than are shown.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        nodes = read_nodes(snapshot)
        self.pods = read_pods(snapshot, nodes)
        add_pods_to_nodes(snapshot, nodes, self.pods)
        self.nodes = _with_gpus(nodes, self.pods)
        self.queues = _tree(snapshot.all("queues"))
        by_pods = self._queues_by_pods()
        leaves = _leaves_by_status(snapshot.all("queues")) if snapshot.partly else by_pods
        _add_up(self.queues, leaves)
        _lend(self.queues)
        self.elsewhere = list[Queue]()
        if not (snapshot.partly and self.queues):
            names = sorted(by_pods.keys() - self.queues.keys())
            self.elsewhere = [by_pods[name] for name in names]

    @property
    def shown_pods(self) -> list[Pod]:
        """The pods in namespaces that are shown."""
        return [pod for pod in self.pods if self.snapshot.shows(pod.namespace)]

    @cached_property
    def shown_pods_by_node(self) -> dict[str | None, list[Pod]]:
        """The same by the name of their node; by None those that wait."""
        pods: dict[str | None, list[Pod]] = defaultdict(list)
        for pod in self.shown_pods:
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

    def _queues_by_pods(self) -> dict[str, Queue]:
        """The queues that pods of KAI name, with what these pods hold and wait for.

        Their quotas and limits are unlimited, because pods say nothing about them. A pod that is
        deleted before it has a node counts in none.
        """
        queues: dict[str, Queue] = {}
        for pod in self.pods:
            if not pod.by_kai or pod.queue is None or (pod.ending and not pod.node):
                continue
            queue = queues.setdefault(pod.queue, _unlimited(pod.queue))
            if pod.node:
                queue.pods += 1
            else:
                queue.waiting_pods += 1
            for resource, share in queue.shares.items():
                amount = pod.amounts[resource]
                if pod.node:
                    share.in_use = rounded(share.in_use + amount)
                else:
                    share.waiting = rounded(share.waiting + amount)
        return queues

    @cached_property
    def leaves(self) -> list[str]:
        """The names of the queues that pods may name, sorted."""
        return sorted(queue.name for queue in self.queues.values() if not queue.children)

    @cached_property
    def leaves_below(self) -> dict[str, list[str]]:
        """The names of the leaves at or below each queue, sorted."""
        below: dict[str, list[str]] = defaultdict(list)
        for leaf in self.leaves:
            for queue in self.upwards(leaf):
                below[queue.name].append(leaf)
        return below

    def upwards(self, name: str | None) -> Iterator[Queue]:
        """A queue and those above it, nearest first; nothing for a name that no queue has."""
        while name is not None and name in self.queues:
            yield self.queues[name]
            name = self.queues[name].parent


def _with_gpus(nodes: Mapping[str, Node], pods: Iterable[Pod]) -> dict[str, Node]:
    """The nodes that advertise GPUs or have pods that hold some, sorted by name."""
    holding = {pod.node for pod in pods if pod.amounts["gpu"]}
    return {
        name: node
        for name, node in sorted(nodes.items())
        if node.count or node.shared or name in holding
    }


def _unlimited(name: str) -> Queue:
    return Queue(name, {resource: Share(UNLIMITED, UNLIMITED) for resource in RESOURCES})


def _tree(items: list[Object]) -> dict[str, Queue]:
    """The queues by name, parents before their children, siblings by name.

    Queues below a parent that is absent, or in a ring, are left out: KAI drops them, too. Raises
    UserError for more queues or levels than are shown.
    """
    if len(items) > _MAX_QUEUES:
        raise UserError(f"the cluster has {len(items)} queues; at most {_MAX_QUEUES} are shown")
    children: dict[str | None, list[Object]] = defaultdict(list)
    for item in sorted(items, key=_name):
        children[_parent(item)].append(item)
    queues: dict[str, Queue] = {}
    pending = children[None][::-1]
    while pending:
        item = pending.pop()
        name = _name(item)
        parent = _parent(item)
        level = queues[parent].level + 1 if parent else 1
        if level > _MAX_LEVELS:
            raise UserError(
                f"queue {name} is on level {level} of the tree; at most {_MAX_LEVELS} levels are"
                " shown"
            )
        queues[name] = Queue(
            name,
            _shares(item["spec"].get("resources") or {}),
            parent,
            level,
            children=[_name(child) for child in children[name]],
        )
        pending += children[name][::-1]
    return queues


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _parent(item: Object) -> str | None:
    parent: str | None = item["spec"].get("parentQueue") or None
    return parent


def _shares(resources: Mapping[str, Mapping[str, float]]) -> dict[str, Share]:
    """The shares that a Queue's `spec.resources` says."""
    shares = {}
    for resource in RESOURCES:
        amounts = resources.get(resource) or {}
        shares[resource] = Share(
            quota=float(amounts.get("quota") or 0),
            limit=float(amounts.get("limit") or 0),
            over_quota_weight=float(amounts.get("overQuotaWeight") or 0),
        )
    return shares


def _leaves_by_status(items: list[Object]) -> dict[str, Queue]:
    """The leaf queues, with what they hold and wait for by the status of their Queues.

    `requested` is of all pods that have not ended, so what waits is the rest of it. From v0.7 to
    v0.17 a fraction of several devices counts as one there, MIG devices not at all, and a share of
    memory waits for no GPU (`pkg/podgroupcontroller/controllers/resources/fraction.go`).
    """
    parents = {_parent(item) for item in items}
    leaves: dict[str, Queue] = {}
    for item in items:
        name = _name(item)
        if name in parents:
            continue
        status = item.get("status") or {}
        held = amounts_of(read(status.get("allocated")))
        requested = amounts_of(read(status.get("requested")))
        leaves[name] = Queue(name, _shares({}))
        for resource, share in leaves[name].shares.items():
            share.in_use = held[resource]
            share.waiting = rounded(max(0.0, requested[resource] - held[resource]))
    return leaves


def _add_up(queues: Mapping[str, Queue], leaves: Mapping[str, Queue]) -> None:
    """Fill in pods, `in_use`, `waiting` and `borrowed` of all queues, from their leaves upwards."""
    for queue in reversed(list(queues.values())):  # children before their parents
        if queue.name in leaves:
            queue.add(leaves[queue.name])
        if queue.parent:
            queues[queue.parent].add(queue)
        for share in queue.shares.values():
            if share.quota != UNLIMITED:
                share.borrowed = rounded(max(0.0, share.in_use - share.quota))


def _lend(queues: Mapping[str, Queue]) -> None:
    """Fill in `lent` of all queues, from the top down: children lend what their parent lends."""
    tops = [queue for queue in queues.values() if queue.parent is None]
    for resource in RESOURCES:
        _lend_among([queue.shares[resource] for queue in tops], Share())
    for parent in queues.values():
        for resource in RESOURCES:
            siblings = [queues[name].shares[resource] for name in parent.children]
            _lend_among(siblings, parent.shares[resource])


def _lend_among(siblings: Sequence[Share], parent: Share) -> None:
    """Spread what siblings borrow, and what their parent lends, over their unused quotas."""
    quotas = sum(max(0.0, share.quota) for share in siblings)
    undivided = max(0.0, parent.quota - quotas)
    borrowed = sum(share.borrowed for share in siblings)
    to_lend = max(0.0, parent.lent + borrowed - undivided)
    unused = [max(0.0, share.quota - share.in_use) for share in siblings]
    all_unused = sum(unused)
    if not all_unused:
        return
    lent_fraction = min(1.0, to_lend / all_unused)
    for share, unused_quota in zip(siblings, unused, strict=True):
        share.lent = rounded(unused_quota * lent_fraction)
