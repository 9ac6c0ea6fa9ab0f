"""Count what the pods of one cluster hold and wait for, by pod and by queue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import KAI, KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_policies.model.cluster import Kai
from kai_fleet_policies.model.pod_use import PodUse, gpu_memory, pods_of
from kai_fleet_policies.model.queues import (
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    rounded,
)

_WITH_VERSION: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")
_MOST: Final = 1e30  # GPUs; a larger amount of a tenant's would make sums infinite
# Annotation of a reservation pod: the UUID of the GPU that it found, which KAI reads.
GPU_INDEX: Final = "run.ai/reserve_for_gpu_index"


@dataclass(frozen=True, slots=True)
class QueueUse:
    """GPUs of a queue with its children's; -1 is unlimited. `level` is 1 at the top."""

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
    """A cluster at one moment: its queues, parents first, and the KAI that runs."""

    pods: tuple[PodUse, ...] = ()
    queues: Mapping[str, QueueUse] = field(default_factory=dict)
    version: str | None = None
    release: KaiRelease | None = None


def version_of(deployments: Iterable[KubeObject]) -> str | None:
    """The version of the KAI that these deployments are; None where they are none."""
    own = {item.name: item for item in deployments if item.namespace in (KAI_NAMESPACE, "")}
    return next((own[name].image_tag for name in _WITH_VERSION if name in own), None)


def count(objects: Mapping[str, Sequence[KubeObject]]) -> ClusterUsage:
    """Count the pods of a cluster. A kind that is absent counts as none."""
    version = version_of(objects.get("deployments", ()))
    release = Kai(version, untested=True).release
    in_megabytes = (release or list(KAI.values())[-1]).gpu_memory_in_megabytes
    nodes, items, queues = (objects.get(kind, ()) for kind in ("nodes", "pods", "queues"))
    memories = {node.name: gpu_memory(node.labels, in_megabytes) for node in nodes}
    pods = pods_of(items, objects.get("podgroups", ()), memories)
    tree = _tree(QueueIndex(map(queue_of, queues)), pods)
    return ClusterUsage(tuple(pods), tree, version, release)


def queue_of(item: KubeObject) -> DeclaredQueue:
    """A Queue object in the model of the rules."""
    return DeclaredQueue.of(item.name, item.spec)


def upwards(queues: Mapping[str, QueueUse], name: str | None) -> Iterator[QueueUse]:
    """A queue and its ancestors."""
    while name is not None and name in queues:
        yield queues[name]
        name = queues[name].parent


def _tree(index: QueueIndex, pods: Iterable[PodUse]) -> dict[str, QueueUse]:
    """Every queue by name, each before its children, but for those that KAI drops."""
    held, waiting = defaultdict[str, float](float), defaultdict[str, float](float)
    for pod in pods:
        if pod.scheduled_by_kai and pod.queue is not None and not (pod.waits and pod.ending):
            (waiting if pod.waits else held)[pod.queue] += pod.gpus
    for name in reversed(index.levels):
        parent = index.by_name[name].parent
        if parent is not None:
            held[parent] += held[name]
            waiting[parent] += waiting[name]
    uses = {}
    for name, level in index.levels.items():
        queue = index.by_name[name]
        # An amount that is not written is 0, a limit too: then nothing may run.
        share = queue.shares.get("gpu", QueueShare(limit=None))
        quota, limit = (max(-_MOST, min(n or 0.0, _MOST)) for n in (share.quota, share.limit))
        amounts = (quota, limit, rounded(held[name]), rounded(waiting[name]))
        shown, leaf = queue.spec.get("displayName") or "", index.is_leaf(name)
        uses[name] = QueueUse(name, queue.parent, level, leaf, *amounts, shown)
    return uses
