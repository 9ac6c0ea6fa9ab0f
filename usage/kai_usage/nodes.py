"""The GPUs of nodes, and the pods on each of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kai_usage.amounts import rounded
from kai_usage.gpu_requests import whole_number
from kai_usage.keys import GPU_UUID_ANNOTATION, MEMORY_LABEL, PRODUCT_LABEL, RESERVATIONS
from kai_usage.objects import (
    Object,
    annotations_of,
    has_ended,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from kai_usage.pods import Pod, groups_of
from kai_usage.requests import read_resources, whole_gpus

# No GPU has a TiB: a label with more MiB is in bytes, a known bug of the labeller.
_TIB_IN_MIB = 2**20
_MIB = 2**20  # bytes
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
# Before this release the scheduler converted the label's MiB to 10^6 bytes, but not the MiB of a
# pod's gpu-memory (getNodeGpuMemory in node_info.go).
_FIRST_RELEASE_IN_MIB = (0, 8, 5)


@dataclass(slots=True)
class SharedGpu:
    """A GPU that pods share, with the fraction of it that each holds.

    `group` is KAI's name for it, `device` its UUID, or "" until its reservation pod has found it.
    `reserved`: there is a reservation pod, which holds the GPU. A fraction is 1 for a pod that asks
    for memory if the GPU's is not known, above 1 if it asks for more than the GPU has, and 0 for a
    pod that is on the GPU by its label and asks for entire GPUs or MIG devices, but for no share
    that can be read. One that asks for no GPU at all is not among the holders.
    """

    group: str
    device: str = ""
    reserved: bool = False
    holders: list[tuple[Pod, float]] = field(default_factory=list)

    @property
    def taken(self) -> float:
        """The sum of the fractions; 1 is the entire GPU, and more is possible."""
        return rounded(sum(fraction for _, fraction in self.holders))


@dataclass(slots=True)
class Node:
    """A node with its GPUs.

    Attributes:
        count: The entire GPUs that it advertises as allocatable, 0 if it is not listed.
        is_listed: False for a node that only pods name, because nodes may not be listed, or because
            it is gone.
        memory_mib: MiB of each of its GPUs by the node's label; None without a number there.
        kai_memory: The same as KAI counts it, as `kai_memory_of` gives it.
        product: The model of its GPUs by the node's label; "" without one.
        whole: Pods that hold entire GPUs here, as `add_pods` fills them in.
        shared: GPUs that pods share, or that are reserved for it, as `add_pods` fills them in.
    """

    name: str
    count: float = 0.0
    memory_mib: int | None = None
    kai_memory: int | None = None
    is_listed: bool = True
    product: str = ""
    whole: list[Pod] = field(default_factory=list)
    shared: list[SharedGpu] = field(default_factory=list)

    @property
    def free(self) -> float | None:
        """The number of GPUs beside those of `whole` and `shared`; None if the node is not listed.

        It may be too many: pods that may not be listed take none of them, nor do pods that
        `read_pods` leaves out, or a share without a group of KAI. A GPU that is only reserved is
        not free. MIG devices take none of them. 0 if pods hold more than the node advertises.
        """
        if not self.is_listed:
            return None
        held = sum(pod.gpu.whole for pod in self.whole) + len(self.shared)
        return max(0.0, self.count - held)


def gpus_of(node: Object) -> float:
    """The number of entire GPUs, of all vendors, that a node advertises as allocatable.

    0 if it advertises none; MIG devices do not count.
    """
    return whole_gpus(read_resources(status_of(node).get("allocatable")))


def kai_memory_of(node: Object, version: str | None = None) -> int | None:
    """The memory of each GPU of a node as this version of KAI counts it, by the node's label.

    MiB, rounded down to a hundred; before v0.8.5 in 10^6 bytes. What follows the three numbers of a
    version is ignored. No version, and one that does not begin with them, counts as the newest.
    None without a number in the label, or for less than a hundred.
    """
    memory = _memory_mib(node)
    if memory is None:
        return None
    numbers = _VERSION.match(version or "")
    if numbers and tuple(map(int, numbers.groups())) < _FIRST_RELEASE_IN_MIB:
        memory = int(memory * _MIB / 10**6)
    return memory - memory % 100 or None


def _memory_mib(node: Object) -> int | None:
    """MiB of each GPU of a node by the node's label; None without a whole number above 0 there.

    A number from 2^20 on is taken for bytes.
    """
    memory = whole_number(labels_of(node).get(MEMORY_LABEL, ""))
    if memory is not None and memory >= _TIB_IN_MIB:
        return memory // _MIB
    return memory


def read_nodes(nodes: Iterable[Object], version: str | None) -> dict[str, Node]:
    """All nodes by name, without pods, also those without GPUs; of one name the last counts.

    `version` is that of the KAI that runs; None: the newest.
    """
    return {
        name_of(item): Node(
            name=name_of(item),
            count=gpus_of(item),
            memory_mib=_memory_mib(item),
            kai_memory=kai_memory_of(item, version),
            product=labels_of(item).get(PRODUCT_LABEL, ""),
        )
        for item in nodes
    }


def add_pods(nodes: dict[str, Node], pods: Iterable[Pod], items: Iterable[Object]) -> None:
    """Fill in `whole` and `shared` of the nodes, in place; `shared` in the order of groups.

    `pods` that have a node and hold GPUs count. Those that ask for entire GPUs are in `whole`,
    those with groups in `shared` by each of them, whatever GPUs they ask for. So one may be in
    both, or in neither, as with MIG devices alone, or with a share that KAI has given no group.

    `items` are all pods as objects: each GPU that a reservation pod among them holds is in
    `shared`, also if no pod is on it. A node that is not in `nodes`, because it may not be listed
    or is gone, is added to it. Call it once: pods are appended.
    """
    shared = _reserved_gpus(items)
    for pod in pods:
        if not pod.node or not pod.gpu_amount:
            continue
        node = nodes.setdefault(pod.node, Node(pod.node, is_listed=False))
        if pod.gpu.whole:
            node.whole.append(pod)
        for group in pod.groups:
            gpu = shared.setdefault((pod.node, group), SharedGpu(group))
            gpu.holders.append((pod, pod.gpu.fraction_of(node.kai_memory)))
    for node_name, group in sorted(shared):
        node = nodes.setdefault(node_name, Node(node_name, is_listed=False))
        node.shared.append(shared[node_name, group])


def _reserved_gpus(items: Iterable[Object]) -> dict[tuple[str, str], SharedGpu]:
    """The GPUs that KAI's reservation pods hold for sharing, by node and group.

    A reservation pod without a node holds none yet, and one that has ended none any more. Of
    several for one GPU the last counts.
    """
    gpus: dict[tuple[str, str], SharedGpu] = {}
    for item in items:
        if namespace_of(item) != RESERVATIONS or has_ended(item):
            continue
        node_name = spec_of(item).get("nodeName")
        if not node_name:
            continue
        device = annotations_of(item).get(GPU_UUID_ANNOTATION, "")
        for group in groups_of(labels_of(item)):
            gpus[node_name, group] = SharedGpu(group, device, reserved=True)
    return gpus
