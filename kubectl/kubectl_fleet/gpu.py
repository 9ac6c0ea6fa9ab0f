"""Pods that hold GPUs or wait for them, and the GPUs of each node with the pods on them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_fleet.cluster import QUEUE_LABEL, RESERVED, SCHEDULER, Object, Snapshot, metadata
from kubectl_fleet.requests import Amounts, GpuRequest, amounts_of, gpu_request, read, requests_of
from kubectl_fleet.table import plain, rounded

POD_GROUP: Final = "pod-group-name"  # an annotation; the PodGroup of that name has the queue
_GROUP: Final = "runai-gpu-group"  # the label of a pod that shares a GPU, and of its reservation
_RESERVATIONS: Final = "kai-resource-reservation"
_DEVICE: Final = "run.ai/reserve_for_gpu_index"  # set on a reservation pod: the UUID of its GPU
_TIB: Final = 2**20  # in MiB; a larger number is in bytes, a known bug of the labeller
# Before this release the scheduler converted the label's MiB to 10^6 bytes, and not the pod's.
_IN_MEBIBYTES: Final = (0, 8, 5)
# Deployments whose image has KAI's version.
_VERSIONED: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")


@dataclass(slots=True)
class Pod:
    """A pod that holds something or waits."""

    item: Object
    spec: Mapping[str, Any]
    namespace: str
    name: str
    phase: str
    queue: str | None  # of its PodGroup, else of its label
    node: str | None  # None while it waits
    amounts: Amounts  # a share of GPU memory that waits counts by the smallest GPUs
    gpu: GpuRequest
    groups: tuple[str, ...]  # KAI's names of the GPUs that it shares
    by_kai: bool  # KAI schedules it: only such pods count in queues
    ending: bool
    created: str


@dataclass(slots=True)
class SharedGpu:
    """A GPU that pods share. `device` is its UUID, "" before its reservation pod found it."""

    group: str
    device: str = ""
    holders: list[tuple[Pod, float]] = field(default_factory=list)

    @property
    def taken(self) -> float:
        """The parts together; 1 is all of it."""
        return rounded(sum(part for _, part in self.holders))


@dataclass(slots=True)
class Node:
    """A node with its GPUs. `memory` is MiB of each by the node's label, `whole` the pods on them.

    `kai_memory` is what KAI takes for that memory.
    """

    name: str
    count: float = 0.0
    memory: int | None = None
    kai_memory: int | None = None
    product: str = ""
    whole: list[Pod] = field(default_factory=list)
    shared: list[SharedGpu] = field(default_factory=list)

    @property
    def free(self) -> float:
        """Devices that no pod has any part of."""
        return max(0.0, self.count - sum(pod.gpu.whole for pod in self.whole) - len(self.shared))


def kai_version(snapshot: Snapshot) -> str | None:
    """Return the version of the KAI that runs, by the image of its operator or scheduler."""
    found = {item["metadata"]["name"]: item for item in snapshot.all("deployments")}
    for name in filter(found.__contains__, _VERSIONED):
        image = found[name]["spec"]["template"]["spec"]["containers"][0].get("image") or ""
        tag = image.partition("@")[0].rpartition(":")[2]
        return tag if tag and "/" not in tag else None
    return None


def gpus_of(node: Object) -> float:
    """Return how many GPUs a node advertises."""
    return amounts_of(read((node.get("status") or {}).get("allocatable")))["gpu"]


def read_nodes(snapshot: Snapshot) -> dict[str, Node]:
    """Return every node, without pods."""
    version = tuple(map(int, re.findall(r"\d+", kai_version(snapshot) or "")))[:3]
    nodes = {}
    for item in snapshot.all("nodes"):
        name, labels = item["metadata"]["name"], metadata(item, "labels")
        label = labels.get("nvidia.com/gpu.memory", "")
        memory = int(label) if label.isdecimal() else 0
        kai = memory if memory < _TIB else memory // _TIB
        kai = int(kai * 2**20 / 10**6) if version and version < _IN_MEBIBYTES else kai
        product = labels.get("nvidia.com/gpu.product", "")
        nodes[name] = Node(name, gpus_of(item), memory or None, kai - kai % 100 or None, product)
    return nodes


def read_pods(snapshot: Snapshot, nodes: Mapping[str, Node]) -> list[Pod]:
    """Return the pods that are not ended, and not Kubernetes', KAI's or the GPU operator's own."""
    memories = {name: node.kai_memory for name, node in nodes.items()}
    smallest = min(filter(None, memories.values()), default=None)
    queues = {
        (group["metadata"].get("namespace"), group["metadata"]["name"]): group["spec"].get("queue")
        for group in snapshot.all("podgroups")
    }
    pods = []
    for item in snapshot.all("pods"):
        about, spec, phase = item["metadata"], item["spec"], _phase(item)
        if about["namespace"] in RESERVED or not phase:
            continue
        labels, annotations = metadata(item, "labels"), metadata(item, "annotations")
        node, requests = spec.get("nodeName") or None, requests_of(spec)
        gpu = gpu_request(annotations, requests)
        gpus = gpu.gpus(memories.get(node) if node else smallest)
        group = (about["namespace"], annotations.get(POD_GROUP, ""))
        pods.append(
            Pod(
                item=item,
                spec=spec,
                namespace=about["namespace"],
                name=about["name"],
                phase=phase,
                queue=queues.get(group) or labels.get(QUEUE_LABEL),
                node=node,
                amounts=amounts_of(requests, gpus),
                gpu=gpu,
                groups=_groups(labels),
                by_kai=spec.get("schedulerName") == SCHEDULER,
                ending="deletionTimestamp" in about,
                created=about.get("creationTimestamp") or "",
            )
        )
    return pods


def place(snapshot: Snapshot, nodes: dict[str, Node], pods: Iterable[Pod]) -> None:
    """Put pods on the GPUs of their nodes; a node that may not be listed is added for them."""
    shared: dict[tuple[str, str], SharedGpu] = {}
    for item in snapshot.all("pods"):
        if item["metadata"]["namespace"] == _RESERVATIONS and _phase(item):
            device = plain(metadata(item, "annotations").get(_DEVICE, ""))
            for group in _groups(metadata(item, "labels")):
                shared[item["spec"].get("nodeName") or "", group] = SharedGpu(group, device)
    for pod in pods:
        if pod.node and pod.amounts["gpu"]:
            node = nodes.setdefault(pod.node, Node(pod.node))
            node.whole += [pod] if pod.gpu.whole else []
            for group in pod.groups:
                gpu = shared.setdefault((pod.node, group), SharedGpu(group))
                gpu.holders.append((pod, pod.gpu.part(node.kai_memory)))
    for name, group in sorted(shared):
        nodes.setdefault(name, Node(name)).shared.append(shared[name, group])


def _groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the groups of the GPUs that a pod shares: one label, or one for each GPU."""
    several = sorted(value for key, value in labels.items() if key.startswith(f"{_GROUP}/"))
    return tuple(several) or ((labels[_GROUP],) if _GROUP in labels else ())


def _phase(item: Object) -> str:
    """Return the phase of a pod; "" for one that has ended."""
    phase = (item.get("status") or {}).get("phase") or "Pending"
    return "" if phase in ("Succeeded", "Failed") else phase
