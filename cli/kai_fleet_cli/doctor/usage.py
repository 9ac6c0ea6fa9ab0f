"""Count what the pods of one cluster hold and wait for, by pod and by queue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kai_fleet.fleet.amounts import rounded
from kai_fleet.fleet.cluster import Kai
from kai_fleet.fleet.queues import UNLIMITED, DeclaredQueue, QueueIndex, QueueShare, shares
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import PodUse, gpu_memory, pods_of
from kai_fleet.releases import KAI, KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE

_NEWEST: Final = list(KAI.values())[-1]
_WITH_VERSION: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")
_MOST: Final = 1e30  # GPUs; a larger amount of a tenant's would make sums infinite
# Annotation of a reservation pod: the UUID of the GPU that it found, which KAI reads.
GPU_INDEX: Final = "run.ai/reserve_for_gpu_index"


@dataclass(frozen=True, slots=True)
class QueueUse:
    """GPUs of a queue; `in_use` and `waiting` include its children. -1 is unlimited.

    `level` is 1 at the top of the tree.
    """

    name: str
    parent: str | None
    level: int
    leaf: bool
    quota: float
    limit: float
    in_use: float = 0.0
    waiting: float = 0.0
    display_name: str = ""

    @property
    def borrowed(self) -> float:
        """GPUs above its own quota."""
        return 0.0 if self.quota == UNLIMITED else rounded(max(0.0, self.in_use - self.quota))


@dataclass(frozen=True)
class ClusterUsage:
    """One cluster at one moment.

    `queues` has parents before their children, and is empty where they may not be listed.
    `release` is the KAI that runs there, None where that is not known.
    """

    pods: tuple[PodUse, ...] = ()
    queues: Mapping[str, QueueUse] = field(default_factory=dict)
    release: KaiRelease | None = None

    @property
    def waiting(self) -> list[PodUse]:
        """The pods without a node, but for those that are being deleted."""
        return [pod for pod in self.pods if pod.waits and not pod.ending]


def count(objects: Mapping[str, Sequence[KubeObject]]) -> ClusterUsage:
    """Count the pods of a cluster. A kind that is absent counts as none."""
    release = Kai(running_version(objects.get("deployments", ())), untested=True).release
    in_megabytes = (release or _NEWEST).gpu_memory_in_megabytes
    nodes, items, queues = (objects.get(kind, ()) for kind in ("nodes", "pods", "queues"))
    memories = {node.name: gpu_memory(node.labels, in_megabytes) for node in nodes}
    pods = pods_of(items, objects.get("podgroups", ()), memories)
    return ClusterUsage(tuple(pods), _tree(QueueIndex(map(queue_of, queues)), pods), release)


def running_version(deployments: Iterable[KubeObject]) -> str | None:
    """The version of the KAI that runs, by the image of its operator or scheduler."""
    own = {item.name: item for item in deployments if item.namespace in (KAI_NAMESPACE, "")}
    return next((own[name].image_tag for name in _WITH_VERSION if name in own), None)


def queue_of(item: KubeObject) -> DeclaredQueue:
    """A Queue object, as the rules know queues."""
    parent, spec = item.spec.get("parentQueue") or None, item.spec
    return DeclaredQueue(item.name, parent, shares(spec.get("resources")), spec=spec)


def upwards(queues: Mapping[str, QueueUse], name: str | None) -> Iterator[QueueUse]:
    """A queue and those above it."""
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent


def _tree(index: QueueIndex, pods: Iterable[PodUse]) -> dict[str, QueueUse]:
    """Every queue by name, parents before their children.

    Queues below a parent that is absent, or in a ring, are left out: KAI drops them too.
    """
    held, waiting = defaultdict[str, float](float), defaultdict[str, float](float)
    for pod in pods:
        if pod.scheduled_by_kai and pod.queue is not None and not (pod.waits and pod.ending):
            (waiting if pod.waits else held)[pod.queue] += pod.amounts.gpu
    tops = sorted(queue.name for queue in index.by_name.values() if queue.parent is None)
    levels: dict[str, int] = {}
    pending = [(name, 1) for name in reversed(tops)]
    while pending:
        name, level = pending.pop()
        levels[name] = level
        # An API server of a tenant may list two queues of one name.
        own = {
            item.name for item in index.children.get(name, ()) if index.by_name[item.name] is item
        }
        pending += [(child, level + 1) for child in sorted(own, reverse=True)]
    for name in reversed(levels):
        if (parent := index.by_name[name].parent) is not None:
            held[parent] += held[name]
            waiting[parent] += waiting[name]
    return {
        name: _use(index.by_name[name], level, index.is_leaf(name), held[name], waiting[name])
        for name, level in levels.items()
    }


def _use(queue: DeclaredQueue, level: int, leaf: bool, held: float, waiting: float) -> QueueUse:
    """An amount that is not written is 0, a limit too: then nothing may run."""
    share = queue.shares.get("gpu", QueueShare(limit=None))
    return QueueUse(
        name=queue.name,
        parent=queue.parent,
        level=level,
        leaf=leaf,
        quota=_amount(share.quota),
        limit=_amount(share.limit),
        in_use=rounded(held),
        waiting=rounded(waiting),
        display_name=queue.spec.get("displayName") or "",
    )


def _amount(value: float | None) -> float:
    return max(-_MOST, min(value or 0.0, _MOST))
