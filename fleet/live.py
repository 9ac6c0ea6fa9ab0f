"""Looking at clusters that may not answer: their nodes and pods, asked once and briefly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from components.settings.quantities import gpu_devices
from policies.model import GPU_RESOURCES, KAI_NAMESPACE

SECONDS: Final = 10.0  # for all of an answer
CONNECT_SECONDS: Final = 3.0
_SYSTEM: Final = ("kube-system", KAI_NAMESPACE, "kai-resource-reservation")
_LONGEST: Final = 120  # of a reason: it ends a sentence


class NoAnswer(Exception):  # noqa: N818 - its message is all a user sees
    """The cluster cannot be asked; the message completes "… did not answer"."""


@dataclass(frozen=True)
class Cluster:
    """A cluster by a context of a kubeconfig file, or by a kubeconfig's content."""

    context: str | None = None
    file: Path | None = None
    content: str | None = None

    def nodes(self) -> list[Mapping[str, Any]]:
        """Every node, as JSON. Raises NoAnswer."""
        return self._items("/api/v1/nodes")

    def pods(self) -> list[Mapping[str, Any]]:
        """The pods that are not finished, without those of Kubernetes and KAI. Raises NoAnswer."""
        return [
            pod
            for pod in self._items("/api/v1/pods")
            if _at(pod, "metadata", "namespace") not in _SYSTEM
            and _at(pod, "status", "phase") not in ("Succeeded", "Failed")
        ]

    def _items(self, path: str) -> list[Mapping[str, Any]]:
        from fleet import api_reader

        try:
            if self.content is not None:
                api = api_reader.client_of_kubeconfig(self.content)
            else:
                file = str(self.file) if self.file else None
                api = api_reader.client_of_context(file, self.context)
            with closing(api_reader.Reader(api, SECONDS, CONNECT_SECONDS)) as reader:
                return reader.list(path)
        except api_reader.Unreachable as why:
            raise NoAnswer(why.reason[:_LONGEST]) from None
        except api_reader.Refused as why:
            raise NoAnswer(str(why)) from None


def gpus_held(pods: Iterable[Mapping[str, Any]]) -> float:
    """The GPUs that pods with a node hold: whole ones, and fractions by their annotation.

    A pod that asks for GPU memory counts with a whole device: which part that is, the node decides.
    """
    return sum((_gpus(pod) for pod in pods if _at(pod, "spec", "nodeName")), 0.0)


def node_gpus(node: Mapping[str, Any]) -> float:
    """The GPUs that a node offers; 0 while it is not Ready."""
    conditions = _at(node, "status", "conditions") or []
    ready = any(_at(c, "type") == "Ready" and _at(c, "status") == "True" for c in conditions)
    allocatable = _at(node, "status", "allocatable")
    return sum(gpu_devices(_at(allocatable, n) or 0) for n in GPU_RESOURCES) if ready else 0.0


def labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    """A node's labels."""
    return _at(node, "metadata", "labels") or {}


def _gpus(pod: Mapping[str, Any]) -> float:
    annotations = _at(pod, "metadata", "annotations") or {}
    try:
        devices = float(annotations.get("gpu-fraction-num-devices", 1))
        if "gpu-fraction" in annotations:
            return devices * float(annotations["gpu-fraction"])
    except ValueError:
        return 0.0
    if "gpu-memory" in annotations:
        return devices
    total = 0.0
    for container in _at(pod, "spec", "containers") or []:
        limits = _at(container, "resources", "limits")
        total += sum(gpu_devices(_at(limits, name) or 0) for name in GPU_RESOURCES)
    return total


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
