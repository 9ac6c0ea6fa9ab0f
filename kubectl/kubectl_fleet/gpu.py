"""Pods that hold GPUs or wait for them, and the GPUs of each node with the pods on them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_fleet.cluster import QUEUE_LABEL, RESERVED, SCHEDULER, Object, Snapshot, metadata
from kubectl_fleet.requests import Amounts, GpuRequest, amounts_of, gpu_request, read, requests_of
from kubectl_fleet.table import plain, rounded

POD_GROUP: Final = "pod-group-name"  # annotation of a pod: its PodGroup, which names the queue
_GROUP: Final = "runai-gpu-group"  # label of a pod that shares a GPU, and of its reservation pod
_RESERVATIONS: Final = "kai-resource-reservation"  # namespace of reservation pods
_DEVICE: Final = "run.ai/reserve_for_gpu_index"  # annotation of a reservation pod: its GPU's UUID
_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
_PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
_MIB: Final = 2**20  # bytes
# No GPU has a TiB: a label with more MiB is in bytes, a known bug of the labeller.
_TIB_IN_MIB: Final = 2**20
# Before this release the scheduler converted the label's MiB to 10^6 bytes, but not the pod's.
_FIRST_RELEASE_IN_MIB: Final = (0, 8, 5)
# Deployments whose image has KAI's version; the first that is there counts.
_VERSIONED: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")


@dataclass(slots=True)
class Pod:
    """A pod that has not ended: it holds something, or waits.

    Attributes:
        item: The object, and `spec` that of it.
        queue: The queue that its PodGroup names, or else its label; None without one.
        node: The name of its node; None while it waits.
        amounts: What it takes of its queue. A share of GPU memory that waits counts by the
            smallest GPUs of the cluster.
        groups: KAI's names of the GPUs that it shares.
        by_kai: KAI schedules it. Only such pods count in queues.
        ending: It is being deleted.
        created: Its time stamp; "" without one.
    """

    item: Object
    spec: Mapping[str, Any]
    namespace: str
    name: str
    phase: str
    queue: str | None
    node: str | None
    amounts: Amounts
    gpu: GpuRequest
    groups: tuple[str, ...]
    by_kai: bool
    ending: bool
    created: str


@dataclass(slots=True)
class SharedGpu:
    """A GPU that pods share, with the fraction of it that each holds.

    `group` is KAI's name of it, `device` its UUID, or "" until its reservation pod has found it.
    """

    group: str
    device: str = ""
    holders: list[tuple[Pod, float]] = field(default_factory=list)

    @property
    def taken(self) -> float:
        """The sum of the fractions; 1 is the entire GPU."""
        return rounded(sum(fraction for _, fraction in self.holders))


@dataclass(slots=True)
class Node:
    """A node with its GPUs.

    Attributes:
        count: The GPUs that it advertises.
        memory_mib: MiB of each of its GPUs by the node's label; None without one.
        kai_memory: The same as KAI counts it: rounded down to hundreds, and before v0.8.5 in 10^6
            bytes.
        whole: Pods that hold entire GPUs here.
        shared: GPUs that pods share.
    """

    name: str
    count: float = 0.0
    memory_mib: int | None = None
    kai_memory: int | None = None
    product: str = ""
    whole: list[Pod] = field(default_factory=list)
    shared: list[SharedGpu] = field(default_factory=list)

    @property
    def free(self) -> float:
        """The number of GPUs of which no pod has any part."""
        held = sum(pod.gpu.whole for pod in self.whole) + len(self.shared)
        return max(0.0, self.count - held)


def kai_version(snapshot: Snapshot) -> str | None:
    """The tag of the image of KAI's operator, or else of its scheduler or binder.

    None if none of them is there, or if the first one has no tag.
    """
    deployments = {item["metadata"]["name"]: item for item in snapshot.all("deployments")}
    for name in _VERSIONED:
        if name in deployments:
            return _image_tag(deployments[name])
    return None


def _image_tag(deployment: Object) -> str | None:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    image = container.get("image") or ""
    tag = image.partition("@")[0].rpartition(":")[2]
    if not tag or "/" in tag:  # behind the colon is the port of a registry
        return None
    return str(tag)


def gpus_of(node: Object) -> float:
    """The number of GPUs that a node advertises."""
    status = node.get("status") or {}
    return amounts_of(read(status.get("allocatable")))["gpu"]


def read_nodes(snapshot: Snapshot) -> dict[str, Node]:
    """All nodes by name, without pods."""
    numbers = re.findall(r"\d+", kai_version(snapshot) or "")
    version = tuple(map(int, numbers[:3]))
    nodes = {}
    for item in snapshot.all("nodes"):
        name = item["metadata"]["name"]
        labels = metadata(item, "labels")
        label = labels.get(_MEMORY_LABEL, "")
        memory = int(label) if label.isdecimal() else 0
        nodes[name] = Node(
            name,
            count=gpus_of(item),
            memory_mib=memory or None,
            kai_memory=_kai_memory(memory, version) or None,
            product=labels.get(_PRODUCT_LABEL, ""),
        )
    return nodes


def _kai_memory(label: int, version: tuple[int, ...]) -> int:
    """The memory of a GPU as KAI of this version counts it; without a version, as the newest."""
    memory_mib = label if label < _TIB_IN_MIB else label // _MIB
    memory = memory_mib
    if version and version < _FIRST_RELEASE_IN_MIB:
        memory = int(memory_mib * _MIB / 10**6)
    return memory - memory % 100


def read_pods(snapshot: Snapshot, nodes: Mapping[str, Node]) -> list[Pod]:
    """The pods that have not ended, without those of Kubernetes, KAI and the GPU operator."""
    memories = {name: node.kai_memory for name, node in nodes.items()}
    smallest_memory = min(filter(None, memories.values()), default=None)
    queues = {
        (group["metadata"].get("namespace"), group["metadata"]["name"]): group["spec"].get("queue")
        for group in snapshot.all("podgroups")
    }
    pods = []
    for item in snapshot.all("pods"):
        about = item["metadata"]
        phase = _phase(item)
        if about["namespace"] in RESERVED or not phase:
            continue
        spec = item["spec"]
        node = spec.get("nodeName") or None
        labels = metadata(item, "labels")
        annotations = metadata(item, "annotations")
        requests = requests_of(spec)
        gpu = gpu_request(annotations, requests)
        gpus = gpu.gpus(memories.get(node) if node else smallest_memory)
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


def add_pods_to_nodes(snapshot: Snapshot, nodes: dict[str, Node], pods: Iterable[Pod]) -> None:
    """Fill in `whole` and `shared` of the nodes, by name of the node and of the shared GPU.

    A node that is not in `nodes`, because it may not be listed, is added to it.
    """
    shared = _reserved_gpus(snapshot)
    for pod in pods:
        if not pod.node or not pod.amounts["gpu"]:
            continue
        node = nodes.setdefault(pod.node, Node(pod.node))
        if pod.gpu.whole:
            node.whole.append(pod)
        for group in pod.groups:
            gpu = shared.setdefault((pod.node, group), SharedGpu(group))
            gpu.holders.append((pod, pod.gpu.fraction_of(node.kai_memory)))
    for node_name, group in sorted(shared):
        node = nodes.setdefault(node_name, Node(node_name))
        node.shared.append(shared[node_name, group])


def _reserved_gpus(snapshot: Snapshot) -> dict[tuple[str, str], SharedGpu]:
    """The GPUs that KAI's reservation pods hold for sharing, by node and group."""
    gpus: dict[tuple[str, str], SharedGpu] = {}
    for item in snapshot.all("pods"):
        if item["metadata"]["namespace"] != _RESERVATIONS or not _phase(item):
            continue
        node_name = item["spec"].get("nodeName") or ""
        device = plain(metadata(item, "annotations").get(_DEVICE, ""))
        for group in _groups(metadata(item, "labels")):
            gpus[node_name, group] = SharedGpu(group, device)
    return gpus


def _groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """KAI's names of the GPUs that a pod shares: in one label, or in a label for each GPU."""
    groups = sorted(value for key, value in labels.items() if key.startswith(f"{_GROUP}/"))
    if not groups and _GROUP in labels:
        return (labels[_GROUP],)
    return tuple(groups)


def _phase(item: Object) -> str:
    """The phase of a pod; "" if it has ended."""
    status = item.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    return "" if phase in ("Succeeded", "Failed") else phase
