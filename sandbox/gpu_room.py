"""How much room nodes have: processors, memory, whole GPUs and GPUs that pods share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from components.settings.quantities import parse_quantity
from sandbox.kube_api import Object
from sandbox.nodes import is_ready

GROUP: Final = "runai-gpu-group"  # label of pods that share a GPU, and of the GPU's reservation
GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu")
_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # MiB of each of the node's GPUs
_WHOLE: Final = Decimal(1)


@dataclass(frozen=True)
class Share:
    """What a pod takes of each of `devices` GPUs: a fraction, or MiB of its memory."""

    fraction: Decimal | None
    mebibytes: int | None
    devices: int = 1

    def on(self, node: Object) -> Decimal | None:
        """The part of one of the node's GPUs; None where that cannot be known."""
        if self.fraction is not None:
            return self.fraction
        memory = node["metadata"].get("labels", {}).get(_MEMORY_LABEL)
        return Decimal(self.mebibytes or 0) / Decimal(memory) if memory else None


def share(pod: Object) -> Share | None:
    """The share of a GPU that a pod's annotations ask for."""
    found = pod["metadata"].get("annotations", {})
    fraction, memory = found.get("gpu-fraction"), found.get("gpu-memory")
    if fraction is None and memory is None:
        return None
    devices = int(found.get("gpu-fraction-num-devices", 1))
    return Share(Decimal(fraction) if fraction else None, int(memory) if memory else None, devices)


def groups(pod: Object) -> list[str]:
    """The shared GPUs that a pod is on, by their group."""
    labels = pod["metadata"].get("labels", {})
    several = [key.partition("/")[2] for key in labels if key.startswith(f"{GROUP}/")]
    return several or ([labels[GROUP]] if GROUP in labels else [])


def requests(pod: Object) -> dict[str, Decimal]:
    """What a pod's containers ask for together, by resource."""
    total: dict[str, Decimal] = {"pods": _WHOLE}
    for container in pod["spec"].get("containers", []):
        resources = container.get("resources", {})
        for name, amount in {
            **resources.get("limits", {}),
            **resources.get("requests", {}),
        }.items():
            total[name] = total.get(name, Decimal(0)) + parse_quantity(amount)
    return total


@dataclass
class Room:
    """What is left of one node."""

    node: Object
    left: dict[str, Decimal]
    shared: dict[str, Decimal] = field(default_factory=dict)  # what is taken of each shared GPU

    def take(self, pod: Object, reservation: bool = False) -> None:
        """Count a pod that is on the node."""
        for name, amount in requests(pod).items():
            self.left[name] = self.left.get(name, Decimal(0)) - amount
        if reservation:
            return
        asked = share(pod)
        part = (asked.on(self.node) if asked else None) or Decimal(0)
        for group in groups(pod):
            self.shared[group] = self.shared.get(group, Decimal(0)) + part

    def fits(self, pod: Object) -> bool:
        """Whether the pod may and can be here, its share of a GPU aside."""
        labels = self.node["metadata"].get("labels", {})
        wanted = pod["spec"].get("nodeSelector") or {}
        return all(labels.get(key) == value for key, value in wanted.items()) and all(
            self.left.get(name, Decimal(0)) >= amount for name, amount in requests(pod).items()
        )

    def shareable(self, asked: Share) -> list[str] | None:
        """The groups with room for a share, fullest first, "" for a GPU to begin; None: no room."""
        part = asked.on(self.node)
        if part is None:
            return None
        fitting = [g for g, taken in self.shared.items() if taken + part <= _WHOLE]
        fitting.sort(key=lambda group: -self.shared[group])
        free = int(sum((self.left.get(gpu, Decimal(0)) for gpu in GPUS), Decimal(0)))
        chosen = [*fitting, *[""] * free][: asked.devices]
        return chosen if len(chosen) == asked.devices else None


def rooms(
    nodes: Iterable[Object], pods: Iterable[Object], reservations: Iterable[Object]
) -> list[Room]:
    """Every node that takes pods, with what the pods on it leave over."""
    found: dict[str, Room] = {}
    for node in nodes:
        if is_ready(node) and not _closed(node):
            allocatable: Mapping[str, Any] = node.get("status", {}).get("allocatable", {})
            left = {name: parse_quantity(amount) for name, amount in allocatable.items()}
            found[node["metadata"]["name"]] = Room(node, left)
    for listed, reserve in ((pods, False), (reservations, True)):
        for pod in listed:
            room = found.get(pod["spec"].get("nodeName", ""))
            if room is not None and pod.get("status", {}).get("phase") not in _OVER:
                room.take(pod, reserve)
    return list(found.values())


_OVER: Final = ("Succeeded", "Failed")


def _closed(node: Object) -> bool:
    spec = node.get("spec", {})
    taints = {taint.get("effect") for taint in spec.get("taints") or []}
    return bool(spec.get("unschedulable") or taints & {"NoSchedule", "NoExecute"})
