"""What a benchmark has on the host: nodes for its teams, and the pods of their vClusters."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from bench.shell import kubectl, until
from kai_fleet.provider.queues import API_VERSION, KIND
from kai_fleet.releases import KAI
from sandbox.lifecycle import Sandbox
from sandbox.nodes.fake_nodes import EVERY_NODE, POOL_LABEL, fake_node

_HAS: Final = {**EVERY_NODE, "cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "2"}


def queue(name: str, spec: Any) -> dict[str, Any]:
    """A Queue as its API has it."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def listed(items: list[Any]) -> str:
    """A List of objects, as kubectl reads it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@contextmanager
def nodes(sandbox: Sandbox, pools: Iterable[str]) -> Iterator[None]:
    """For a while, have a node with two GPUs in each of these pools, where a team's KAI runs."""
    text = listed([fake_node(f"{it}-1", {POOL_LABEL: it}, _HAS, _HAS, []) for it in pools])
    kubectl(sandbox, "create", "-f", "-", stdin=text)
    try:
        yield
    finally:
        kubectl(sandbox, "delete", "--wait=false", "--ignore-not-found", "-f", "-", stdin=text)


def synced(sandbox: Sandbox, namespace: str, pool: str, version: str) -> None:
    """Have the pods that a real vCluster has on its host, which the sandbox's does not bring there.

    Those of a team with this KAI and nothing else: one per deployment, and its DNS. A removal ends
    them too, and Kubernetes takes its time over a namespace with pods in it.
    """
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-x-inside", "namespace": namespace},
            "spec": {
                "nodeSelector": {POOL_LABEL: pool},
                "containers": [{"name": "main", "image": "synced"}],
            },
        }
        for name in ("coredns", *KAI[version].deployments)
    ]
    kubectl(sandbox, "create", "-f", "-", stdin=listed(items))
    until(partial(_all_have_nodes, sandbox, namespace))


def _all_have_nodes(sandbox: Sandbox, namespace: str) -> bool:
    pods = kubectl(sandbox, "-n", namespace, "get", "pods", "-o", "json")["items"]
    return all(pod["spec"].get("nodeName") for pod in pods)
