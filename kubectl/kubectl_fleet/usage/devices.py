"""The GPUs of a cluster: who holds which whole ones of a node, and who shares which one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.usage.amounts import rounded
from kubectl_fleet.usage.pods import RESERVATIONS, PodUse
from kubectl_fleet.usage.requests import MEMORY_LABEL, groups_of, numbers, whole_gpus

# What the reservation pod of a group finds and KAI reads: the UUID of its GPU.
_DEVICE: Final = "run.ai/reserve_for_gpu_index"


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

    `whole` are the pods with whole GPUs and how many.
    """

    node: str
    count: float
    memory: int | None = None
    product: str = ""
    whole: tuple[tuple[PodUse, float], ...] = ()
    shared: tuple[SharedGpu, ...] = ()

    @property
    def held(self) -> float:
        """Devices that pods hold, of shared ones the parts that they have."""
        return sum(count for _, count in self.whole) + sum(gpu.taken for gpu in self.shared)

    @property
    def free(self) -> float:
        """Devices that no pod has any part of."""
        return max(0.0, self.count - sum(count for _, count in self.whole) - len(self.shared))


def gpus_of(
    pods: Iterable[PodUse],
    items: Iterable[KubeObject],
    nodes: Iterable[KubeObject],
    memories: Mapping[str, int | None],
) -> dict[str, NodeGpus]:
    """By node: of those that have GPUs, and of those that are not known and pods hold GPUs of.

    `items` are all pods of the cluster, the reservation pods of shared GPUs among them.
    """
    whole: dict[str, list[tuple[PodUse, float]]] = defaultdict(list)
    holders: dict[tuple[str, str], list[tuple[PodUse, float]]] = defaultdict(list)
    for pod in pods:
        if pod.node is None:
            continue
        if pod.gpu.whole:
            whole[pod.node].append((pod, pod.gpu.whole))
        for group in pod.groups:
            holders[pod.node, group].append((pod, pod.gpu.each(memories.get(pod.node))))
    devices: dict[tuple[str, str], str] = {}
    for item in items:
        if item.namespace == RESERVATIONS and not item.ended:
            for group in groups_of(item.labels):
                node = item.spec.get("nodeName") or ""
                devices[node, group] = item.annotations.get(_DEVICE, "")
    shared: dict[str, list[SharedGpu]] = defaultdict(list)
    for key in sorted({*holders, *devices}):
        node, group = key
        shared[node].append(SharedGpu(group, devices.get(key, ""), tuple(holders[key])))
    known = {item.name: item for item in nodes}
    gpus: dict[str, NodeGpus] = {}
    for node in sorted({*known, *whole, *shared}):
        item = known.get(node) or KubeObject(metadata={})
        memory = item.labels.get(MEMORY_LABEL, "")
        count = whole_gpus(numbers(item.status.get("allocatable")))
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
