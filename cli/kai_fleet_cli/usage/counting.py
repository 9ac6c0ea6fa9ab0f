"""The usage of a cluster, counted from what it answered: who holds which whole GPUs of a node, who
shares which one, and what its queues have.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from kai_fleet.fleet.amounts import SLACK, in_words, rounded
from kai_fleet.fleet.judged import JudgedKai
from kai_fleet.fleet.queues import UNLIMITED, QueueIndex
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import (
    MEMORY_LABEL,
    RESERVATIONS,
    PodUse,
    gpu_memory,
    groups_of,
    numbers,
    pods_of,
    whole_gpus,
)
from kai_fleet.releases import KAI, KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.usage.queues import QueueUse, by_queue, by_status, queue_of, tree

_NEWEST: Final = list(KAI.values())[-1]
_WITH_VERSION: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")
# What the reservation pod of a group finds and KAI reads: the UUID of its GPU.
GPU_INDEX: Final = "run.ai/reserve_for_gpu_index"


@dataclass(frozen=True)
class SharedGpu:
    """A GPU that pods share. `device` is its UUID as its reservation pod found it, "" before.

    `holders` are the pods on it with the part that each has.
    """

    group: str
    device: str = ""
    holders: tuple[tuple[PodUse, float], ...] = ()

    @property
    def taken(self) -> float:
        """The parts together; 1 is all of it."""
        return rounded(sum(part for _, part in self.holders))


@dataclass(frozen=True)
class NodeGpus:
    """The GPUs of a node. `memory` is MiB of each as the node's label says, None for no label.

    `whole` are the pods with whole GPUs.
    """

    node: str
    count: float
    memory: int | None = None
    product: str = ""
    whole: tuple[PodUse, ...] = ()
    shared: tuple[SharedGpu, ...] = ()

    @property
    def held(self) -> float:
        """Devices that pods hold, of shared ones the parts that they have."""
        return sum(it.gpu.whole for it in self.whole) + sum(gpu.taken for gpu in self.shared)

    @property
    def free(self) -> float:
        """Devices that no pod has any part of."""
        return max(0.0, self.count - sum(it.gpu.whole for it in self.whole) - len(self.shared))


@dataclass(frozen=True)
class ClusterUsage:
    """One cluster at one moment.

    `queues` are in the order of the tree, parents before their children, and empty where the
    cluster has none or they may not be listed. `gpus` are by node. `release` is the KAI that runs
    there, None where that is not known.

    What is in use is counted from pods that have a node and are not ended. Where not all pods may
    be listed, it is what the status of the Queues says (`partly`). From v0.7 to v0.17 that
    status counts a fraction of several devices (`gpu-fraction-num-devices`) as one, MIG devices not
    at all, and a share of memory otherwise than KAI's scheduler does
    (`pkg/podgroupcontroller/controllers/resources/fraction.go`).
    """

    pods: tuple[PodUse, ...] = ()
    queues: Mapping[str, QueueUse] = field(default_factory=dict)
    gpus: Mapping[str, NodeGpus] = field(default_factory=dict)
    release: KaiRelease | None = None

    @property
    def waiting(self) -> list[PodUse]:
        """The pods without a node, with those that never get one."""
        return [pod for pod in self.pods if pod.waits]


def count(objects: Mapping[str, Sequence[KubeObject]], *, partly: bool = False) -> ClusterUsage:
    """Count pods, queues and GPUs. A kind that is not there counts nothing.

    `partly`: not all pods of the cluster are there.
    """
    release = JudgedKai(running_version(objects.get("deployments", ())), untested=True).release
    in_megabytes = (release or _NEWEST).gpu_memory_in_megabytes
    nodes, items, queues = (objects.get(kind, ()) for kind in ("nodes", "pods", "queues"))
    index = QueueIndex(map(queue_of, queues))
    memories = {node.name: gpu_memory(node.labels, in_megabytes) for node in nodes}
    pods = _marked(pods_of(items, objects.get("podgroups", ()), memories), nodes, index)
    return ClusterUsage(
        pods=tuple(pods),
        queues=tree(index, by_status(queues) if partly else by_queue(pods)),
        gpus=_gpus_of(pods, items, nodes, memories),
        release=release,
    )


def running_version(deployments: Iterable[KubeObject]) -> str | None:
    """The version of the KAI that runs, by the image of its operator or scheduler."""
    own = {it.name: it for it in deployments if it.namespace in (KAI_NAMESPACE, "")}
    return next((own[name].image_tag for name in _WITH_VERSION if name in own), None)


def _marked(pods: Iterable[PodUse], nodes: Sequence[KubeObject], index: QueueIndex) -> list[PodUse]:
    """The pods, those that never run with why.

    A node counts that is not Ready, because it may be again; where none is there, one may be added.
    """
    sizes = [(node.labels.items(), _gpus(node)) for node in nodes]

    @cache  # pods choose nodes by a few sets of labels
    def largest(selector: frozenset[tuple[str, str]]) -> float:
        return max((gpus for labels, gpus in sizes if selector <= labels), default=0.0)

    return [
        replace(pod, never=_never(pod, index, largest(pod.selector)))
        if pod.waits and pod.amounts.gpu
        else pod
        for pod in pods
    ]


def _never(pod: PodUse, index: QueueIndex, most: float) -> str:
    """`most` are the GPUs of the largest node that the pod may run on."""
    own = index.by_name.get(pod.queue or "") if pod.scheduled_by_kai else None
    for queue in (own, *index.ancestors(own)) if own else ():
        share = queue.shares.get("gpu")
        limit = (share and share.limit) or 0.0  # what is not written is 0
        if limit != UNLIMITED and pod.amounts.gpu > limit + SLACK:
            wants = in_words("gpu", pod.amounts.gpu)
            return f"it asks for {wants}, and queue {queue.name} may hold at most {limit:g}"
    devices = pod.gpu.devices if pod.gpu.shared else pod.gpu.whole
    if most and devices > most:
        return f"it asks for {in_words('gpu', devices)}, and no node has more than {most:g}"
    return ""


def _gpus_of(
    pods: Iterable[PodUse],
    items: Iterable[KubeObject],
    nodes: Iterable[KubeObject],
    memories: Mapping[str, int | None],
) -> dict[str, NodeGpus]:
    """By node: of those that have GPUs, and of those that are not known and pods hold GPUs of.

    `items` are all pods of the cluster, the reservation pods of shared GPUs among them.
    """
    whole: dict[str, list[PodUse]] = defaultdict(list)
    holders: dict[tuple[str, str], list[tuple[PodUse, float]]] = defaultdict(list)
    for pod in pods:
        if pod.node is None:
            continue
        if pod.gpu.whole:
            whole[pod.node].append(pod)
        for group in pod.groups:
            holders[pod.node, group].append((pod, pod.gpu.each(memories.get(pod.node))))
    devices = {
        (item.spec.get("nodeName") or "", group): item.annotations.get(GPU_INDEX, "")
        for item in items
        if item.namespace == RESERVATIONS and not item.ended
        for group in groups_of(item.labels)
    }
    shared: dict[str, list[SharedGpu]] = defaultdict(list)
    for key in sorted({*holders, *devices}):
        node, group = key
        shared[node].append(SharedGpu(group, devices.get(key, ""), tuple(holders[key])))
    known = {item.name: item for item in nodes}
    gpus: dict[str, NodeGpus] = {}
    for node in sorted({*known, *whole, *shared}):
        item = known.get(node) or KubeObject(metadata={})
        memory, count = item.labels.get(MEMORY_LABEL, ""), _gpus(item)
        if count or whole[node] or shared[node]:
            gpus[node] = NodeGpus(
                node,
                count,
                memory=int(memory) if memory.isdecimal() else None,
                product=item.labels.get("nvidia.com/gpu.product", ""),
                whole=tuple(whole[node]),
                shared=tuple(shared[node]),
            )
    return gpus


def _gpus(node: KubeObject) -> float:
    return whole_gpus(numbers(node.status.get("allocatable")))
