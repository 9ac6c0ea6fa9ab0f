"""Count the GPUs that pods of one cluster hold and wait for, by pod and by queue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.queue_amounts import for_kai, is_unlimited_in_spec
from kai_fleet.releases import KAI, KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.values import get, known_or
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.pod_use import PodUse, gpu_memory, pods_of
from kai_fleet_policies.model.queues import (
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    rounded,
)

# Deployments whose image tag is KAI's version. The first one that exists decides.
_WITH_VERSION: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")
_MOST_GPUS: Final = 1e30  # a larger amount, which a tenant may write, would make sums infinite
# Annotation of a reservation pod: the UUID of the GPU that it holds. KAI reads it.
GPU_INDEX: Final = "run.ai/reserve_for_gpu_index"


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The GPUs of a queue and of its children together.

    Args:
        name: The queue's name.
        parent: Its parent's name; None at the top.
        level: 1 at the top.
        leaf: No queue names this one as its parent.
        quota: GPUs; -1 is unlimited.
        limit: GPUs; -1 is unlimited.
        in_use: GPUs that pods with a node hold.
        waiting: GPUs that pods without a node ask for.
        display_name: The queue's displayName, or "".
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
        """GPUs in use above the quota; 0 if the quota is unlimited."""
        if is_unlimited_in_spec(self.quota):
            return 0.0
        return rounded(max(0.0, self.in_use - self.quota))


@dataclass(frozen=True)
class ClusterUsage:
    """The pods and queues of a cluster, and the KAI that runs.

    Args:
        pods: Pods that hold or wait for GPUs or nodes, without ended ones and those of Kubernetes.
        queues: Queues by name, parents before their children.
        version: Version of KAI; None if none runs.
        release: Row of the release table for that version; None if there is none.
    """

    pods: tuple[PodUse, ...] = ()
    queues: Mapping[str, QueueUse] = field(default_factory=dict)
    version: str | None = None
    release: KaiRelease | None = None


def version_of(deployments: Iterable[KubeObject]) -> str | None:
    """Return the version of the KAI that these Deployments belong to.

    None if none of them is a part of KAI, or the part's image has no tag.
    """
    parts = {item.name: item for item in deployments if item.namespace in (KAI_NAMESPACE, "")}
    for name in _WITH_VERSION:
        if name in parts:
            return parts[name].image_tag
    return None


def count(objects: Mapping[str, Sequence[KubeObject]]) -> ClusterUsage:
    """Count what the pods of a cluster hold and wait for.

    `objects` has lists by the plural of their kind. A kind without a list counts as empty.
    """
    version = version_of(objects.get("deployments", ()))
    release = Kai(version, untested=True).release
    in_megabytes = (release or list(KAI.values())[-1]).gpu_memory_in_megabytes
    nodes = objects.get("nodes", ())
    pod_groups = objects.get("podgroups", ())
    queues = objects.get("queues", ())
    memories = {node.name: gpu_memory(node.labels, in_megabytes) for node in nodes}
    pods = pods_of(objects.get("pods", ()), pod_groups, memories)
    return ClusterUsage(
        pods=tuple(pods),
        queues=_queue_uses(QueueIndex(map(queue_of, queues)), pods),
        version=version,
        release=release,
    )


def queue_of(item: KubeObject) -> DeclaredQueue:
    """Return a Queue object as a queue of the rules' model."""
    return DeclaredQueue.of(item.name, item.spec)


def upwards(queues: Mapping[str, QueueUse], name: str | None) -> Iterator[QueueUse]:
    """Yield a queue and its ancestors, nearest first; nothing if there is no such queue."""
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent


def _queue_uses(index: QueueIndex, pods: Iterable[PodUse]) -> dict[str, QueueUse]:
    """Return queues by name, parents before their children.

    Queues in or below a cycle, or below a parent that does not exist, are left out as KAI does.
    """
    in_use = defaultdict[str, float](float)
    waiting = defaultdict[str, float](float)
    for pod in pods:
        if not pod.scheduled_by_kai or pod.queue is None:
            continue
        if not pod.waits:
            in_use[pod.queue] += pod.gpus
        elif not pod.ending:
            waiting[pod.queue] += pod.gpus
    for name in reversed(index.levels):
        parent = known_or(index.by_name[name].parent, None)
        if parent is not None:
            in_use[parent] += in_use[name]
            waiting[parent] += waiting[name]
    uses = dict[str, QueueUse]()
    for name, level in index.levels.items():
        queue = index.by_name[name]
        # KAI takes an amount that is not written as 0. With a limit of 0 nothing may run.
        share = known_or(queue.shares, {}).get("gpu", QueueShare(limit=None))
        uses[name] = QueueUse(
            name=name,
            parent=known_or(queue.parent, None),
            level=level,
            leaf=index.is_leaf(name),
            quota=_bounded(for_kai(known_or(share.quota, 0.0))),
            limit=_bounded(for_kai(known_or(share.limit, None) or 0.0)),
            in_use=rounded(in_use[name]),
            waiting=rounded(waiting[name]),
            display_name=get(queue.spec, "displayName") or "",
        )
    return uses


def _bounded(gpus: float) -> float:
    """Return an amount of GPUs that sums stay finite with."""
    return max(-_MOST_GPUS, min(gpus, _MOST_GPUS))
