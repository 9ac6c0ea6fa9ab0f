"""The GPUs of a cluster: who holds which whole ones of a node, and who shares which one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.kai.keys import GPU_RESOURCES
from kai_fleet_cli.gpu_usage.amounts import rounded
from kai_fleet_cli.gpu_usage.gpu_share import MEMORY_LABEL, groups_of
from kai_fleet_cli.gpu_usage.pods import RESERVATIONS, PodUse
from kai_fleet_cli.gpu_usage.requests import requests_of

# What the reservation pod of a group finds and KAI reads: the UUID of its GPU.
_DEVICE: Final = "run.ai/reserve_for_gpu_index"


@dataclass(frozen=True)
class SharedGpu:
    """A GPU that pods share. `device` is its UUID as its reservation pod found it, "" before.

    `holders` are the pods on it with the part that each has; `reserved` is whether a reservation
    pod holds the GPU for them.
    """

    group: str
    node: str
    device: str = ""
    reserved: bool = False
    holders: tuple[tuple[PodUse, float], ...] = ()

    @property
    def taken(self) -> float:
        """The parts together; 1 is all of it."""
        return rounded(sum(part for _, part in self.holders))


@dataclass(frozen=True)
class NodeGpus:
    """The GPUs of a node. `memory` is MiB of each as the node's label says, None for no label.

    `whole` are the pods with whole GPUs and how many; `mig` counts the slices that pods hold.
    """

    node: str
    count: float
    memory: int | None = None
    product: str = ""
    whole: tuple[tuple[PodUse, float], ...] = ()
    shared: tuple[SharedGpu, ...] = ()
    mig: float = 0.0

    @property
    def free(self) -> float:
        """Devices that no pod holds and none shares."""
        return self.count - sum(count for _, count in self.whole) - len(self.shared)


def gpus_of(
    pods: Iterable[PodUse],
    nodes: Iterable[Mapping[str, Any]],
    reservations: Iterable[Mapping[str, Any]],
    memories: Mapping[str, int | None],
) -> dict[str, NodeGpus]:
    """By node: of those that have GPUs, and of those that are not known and pods hold GPUs of."""
    whole: dict[str, list[tuple[PodUse, float]]] = defaultdict(list)
    holders: dict[tuple[str, str], list[tuple[PodUse, float]]] = defaultdict(list)
    mig: dict[str, float] = defaultdict(float)
    for pod in pods:
        if pod.node is None:
            continue
        if pod.gpu.whole:
            whole[pod.node].append((pod, pod.gpu.whole))
        mig[pod.node] += pod.gpu.mig
        for group in pod.groups:
            holders[pod.node, group].append((pod, pod.gpu.each(memories.get(pod.node))))
    devices: dict[tuple[str, str], str] = {}
    for item in reservations:
        metadata, node = item["metadata"], (item.get("spec") or {}).get("nodeName") or ""
        for group in groups_of(metadata.get("labels") or {}):
            devices[node, group] = (metadata.get("annotations") or {}).get(_DEVICE, "")
    shared: dict[str, list[SharedGpu]] = defaultdict(list)
    for node, group in sorted({*holders, *devices}):
        key = node, group
        one = SharedGpu(group, node, devices.get(key, ""), key in devices, tuple(holders[key]))
        shared[node].append(one)
    known = {item["metadata"]["name"]: item for item in nodes}
    found = {}
    for node in sorted({*known, *whole, *shared}):
        there = known.get(node)
        labels = there["metadata"].get("labels") or {} if there else {}
        memory = labels.get(MEMORY_LABEL, "")
        found[node] = NodeGpus(
            node=node,
            count=_count(there) if there else 0.0,
            memory=int(memory) if memory.isdecimal() else None,
            product=labels.get("nvidia.com/gpu.product", ""),
            whole=tuple(whole[node]),
            shared=tuple(shared[node]),
            mig=mig[node],
        )
    return {name: one for name, one in found.items() if one.count or one.whole or one.shared}


def reservations_of(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The pods that hold a GPU for others, of all pods of a cluster."""
    return [
        item
        for item in items
        if item["metadata"].get("namespace") == RESERVATIONS
        and (item.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]


def _count(node: Mapping[str, Any]) -> float:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    asked = requests_of({"containers": [{"resources": {"requests": allocatable}}]})
    return sum(asked.get(name, 0.0) for name in GPU_RESOURCES)
