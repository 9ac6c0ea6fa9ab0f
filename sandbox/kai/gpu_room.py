"""Free capacity of nodes: CPU, memory, whole GPUs and GPUs that pods share."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet_policies.model.pod_use import (
    GpuRequest,
    gpu_memory,
    gpu_request,
    groups_of,
    numbers,
    requests_of,
    whole_gpus,
)
from kai_fleet_policies.model.queues import rounded
from sandbox.control_plane.kube_api import Object


def groups(pod: Object) -> tuple[str, ...]:
    """The shared GPUs that a pod is on, by their group."""
    return groups_of(pod["metadata"].get("labels", {}))


def gpu_request_of(pod: Object) -> GpuRequest:
    """A pod's request of GPUs."""
    return gpu_request(pod["metadata"].get("annotations", {}), requests_of(pod["spec"]))


@dataclass
class Room:
    """The free capacity of one node."""

    node: Object
    left: dict[str, float]
    shared: dict[str, float] = field(default_factory=dict)  # what is taken of each shared GPU

    @property
    def memory(self) -> int | None:
        """MiB of each GPU; None without a label."""
        return gpu_memory(self.node["metadata"].get("labels", {}))

    def take(self, pod: Object, reservation: bool = False) -> None:
        """Count a pod that is on the node."""
        for name, amount in _needs(pod):
            self.left[name] = rounded(self.left.get(name, 0.0) - amount)
        if not reservation:
            part = gpu_request_of(pod).each(self.memory)
            for group in groups(pod):
                self.shared[group] = rounded(self.shared.get(group, 0.0) + part)

    def fits(self, pod: Object) -> bool:
        """Whether the pod may and can run here, its share of a GPU aside."""
        labels = self.node["metadata"].get("labels", {})
        selector = pod["spec"].get("nodeSelector") or {}
        return all(labels.get(key) == value for key, value in selector.items()) and all(
            self.left.get(name, 0.0) >= amount for name, amount in _needs(pod)
        )

    def shareable(self, request: GpuRequest) -> list[str] | None:
        """Groups with room for a share, fullest first; "" is an unshared GPU. None: no room."""
        if request.mebibytes is not None and self.memory is None:
            return None
        part = request.each(self.memory)
        fitting = [g for g, taken in self.shared.items() if rounded(taken + part) <= 1]
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
        if KubeObject(node).is_true("Ready") and not _takes_no_pods(node):
            left = numbers(node.get("status", {}).get("allocatable"))
            found[node["metadata"]["name"]] = Room(node, left)
    for listed, reserve in ((pods, False), (reservations, True)):
        for pod in listed:
            room = found.get(pod["spec"].get("nodeName", ""))
            if room is not None and not KubeObject(pod).ended:
                room.take(pod, reserve)
    return list(found.values())


def _needs(pod: Object) -> Iterable[tuple[str, float]]:
    return {"pods": 1.0, **requests_of(pod["spec"])}.items()


def _takes_no_pods(node: Object) -> bool:
    spec = node.get("spec", {})
    effects = {taint.get("effect") for taint in spec.get("taints") or []}
    return bool(spec.get("unschedulable") or effects & {"NoSchedule", "NoExecute"})
