"""Looking at clusters that may not answer: their nodes and pods, asked once and briefly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kai_fleet.kai.keys import GPU_RESOURCES, KAI_NAMESPACE
from kai_fleet.kube.api import OF_OPERATORS, OF_TENANTS, Api
from kai_fleet.kube.errors import KubeError
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.settings.quantities import gpu_devices
from kai_fleet_cli.gpu_usage.gpu_share import gpu_ask
from kai_fleet_cli.gpu_usage.requests import requests_of

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
        try:
            if self.content is not None:
                way = connection(self.content)
            else:
                way = connection(file=str(self.file) if self.file else None, context=self.context)
            most = OF_TENANTS if self.content is not None else OF_OPERATORS
            with closing(Api(way, connect=CONNECT_SECONDS, in_all=SECONDS, most=most)) as api:
                return [*api.list(path)]
        except KubeError as why:
            raise NoAnswer(str(why)[:_LONGEST]) from None


def gpus_held(pods: Iterable[Mapping[str, Any]]) -> float:
    """The GPUs that pods with a node hold.

    A pod that asks for GPU memory counts with a whole device: which part that is, the node decides.
    Raises NoAnswer for what is no pod: a vCluster's API server is its tenant's.
    """
    try:
        return sum(
            gpu_ask(_at(pod, "metadata", "annotations") or {}, requests_of(pod["spec"])).gpus(None)
            for pod in pods
            if _at(pod, "spec", "nodeName")
        )
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as why:
        raise NoAnswer(f"it answers no pods ({type(why).__name__})") from None


def node_gpus(node: Mapping[str, Any]) -> float:
    """The GPUs that a node offers; 0 while it is not Ready."""
    conditions = _at(node, "status", "conditions") or []
    ready = any(_at(c, "type") == "Ready" and _at(c, "status") == "True" for c in conditions)
    allocatable = _at(node, "status", "allocatable")
    return sum(gpu_devices(_at(allocatable, n) or 0) for n in GPU_RESOURCES) if ready else 0.0


def labels(node: Mapping[str, Any]) -> Mapping[str, str]:
    """A node's labels."""
    return _at(node, "metadata", "labels") or {}


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
