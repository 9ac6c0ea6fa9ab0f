"""Free capacity of nodes: CPU, memory, whole GPUs and GPUs that pods share."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kai_usage.amounts import rounded
from kai_usage.gpu_requests import GpuRequest, gpu_request
from kai_usage.nodes import kai_memory_of
from kai_usage.objects import annotations_of, has_ended, has_labels, is_cordoned, is_true, labels_of
from kai_usage.pods import groups_of
from kai_usage.requests import Requests, read_resources, requests_of, whole_gpus
from sandbox.control_plane.kube_api import Object


def groups(pod: Object) -> tuple[str, ...]:
    """The shared GPUs that a pod is on, by their group."""
    return groups_of(labels_of(pod))


def gpu_request_of(pod: Object) -> GpuRequest:
    """A pod's request of GPUs."""
    return gpu_request(annotations_of(pod), requests_of(pod["spec"]))


@dataclass
class Room:
    """The free capacity of one node."""

    node: Object
    left: Requests
    shared: dict[str, float] = field(default_factory=dict)  # what is taken of each shared GPU

    @property
    def memory(self) -> int | None:
        """MiB of each GPU; None without a label."""
        return kai_memory_of(self.node)

    def take(self, pod: Object, reservation: bool = False) -> None:
        """Count a pod that is on the node."""
        self.left.subtract(_needs(pod))
        if reservation:
            return
        fraction = gpu_request_of(pod).fraction_of(self.memory)
        for group in groups(pod):
            self.shared[group] = rounded(self.shared.get(group, 0.0) + fraction)

    def fits(self, pod: Object) -> bool:
        """Whether the pod may and can run here, its share of a GPU aside."""
        selector = pod["spec"].get("nodeSelector") or {}
        needs = _needs(pod)
        return has_labels(self.node, selector) and all(
            self.left[name] >= amount for name, amount in needs.items()
        )

    def shareable(self, request: GpuRequest) -> list[str] | None:
        """Groups with room for a share, fullest first; "" is an unshared GPU. None: no room."""
        if request.memory_mib is not None and self.memory is None:
            return None
        fraction = request.fraction_of(self.memory)
        fitting = [g for g, taken in self.shared.items() if rounded(taken + fraction) <= 1]
        fitting.sort(key=lambda group: -self.shared[group])
        free = int(whole_gpus(self.left))
        chosen = [*fitting, *[""] * free][: request.devices]
        return chosen if len(chosen) == request.devices else None


def rooms(
    nodes: Iterable[Object], pods: Iterable[Object], reservations: Iterable[Object]
) -> list[Room]:
    """Every node that takes pods, with what its pods leave free."""
    found: dict[str, Room] = {}
    for node in nodes:
        if is_true(node, "Ready") and not _takes_no_pods(node):
            left = read_resources(node.get("status", {}).get("allocatable"))
            found[node["metadata"]["name"]] = Room(node, left)
    for listed, reserve in ((pods, False), (reservations, True)):
        for pod in listed:
            room = found.get(pod["spec"].get("nodeName", ""))
            if room is not None and not has_ended(pod):
                room.take(pod, reserve)
    return list(found.values())


def _needs(pod: Object) -> Requests:
    return Requests(pods=1000) + requests_of(pod["spec"])


def _takes_no_pods(node: Object) -> bool:
    taints = node.get("spec", {}).get("taints") or []
    effects = {taint.get("effect") for taint in taints}
    return is_cordoned(node) or bool(effects & {"NoSchedule", "NoExecute"})
