"""The host's nodes: fake ones, in pools by team, from nodes.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from sandbox.kube_api import Api

POOLS: Final = Path(__file__).with_name("nodes.yaml")
POOL_LABEL: Final = "kai-fleet/pool"
NODES: Final = "/api/v1/nodes"
# What every real node has; vCluster's chart asks for the storage.
EVERY_NODE: Final = {"pods": "110", "ephemeral-storage": "500Gi"}


def host_nodes() -> Iterator[dict[str, Any]]:
    """Every node that nodes.yaml asks for, as the API wants it."""
    for pool in yaml.safe_load(POOLS.read_text()):
        for number in range(1, pool["nodes"] + 1):
            yield _node(f"{pool['pool']}-{number}", pool)


def _node(name: str, pool: Mapping[str, Any]) -> dict[str, Any]:
    labels = {POOL_LABEL: pool["pool"]}
    resources = {**EVERY_NODE, "cpu": pool["cpu"], "memory": pool["memory"]}
    if gpus := pool.get("gpus"):
        resources["nvidia.com/gpu"] = str(gpus["count"])
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(gpus["count"]),
            "nvidia.com/gpu.product": gpus["product"],
            "nvidia.com/gpu.memory": str(gpus["memory"]),
        }
    return fake_node(name, labels, resources, resources, [])


def fake_node(
    name: str,
    labels: Mapping[str, str],
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
    taints: list[dict[str, Any]],
) -> dict[str, Any]:
    """A node that KWOK plays. Its address is loopback, where node ports are served."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "kubernetes.io/hostname": name,
                "type": "kwok",
                **labels,
            },
        },
        "spec": {"taints": taints},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "capacity": dict(capacity),
            "allocatable": dict(allocatable),
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v1.34.4",
                "containerRuntimeVersion": "kwok://simulated",
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "kubeProxyVersion": "",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }


def ensure_host_nodes(api: Api) -> None:
    """Make the nodes that are missing. Raises ApiError."""
    there = {node["metadata"]["name"] for node in api.get(NODES)["items"]}
    for node in host_nodes():
        if node["metadata"]["name"] not in there:
            api.post(NODES, node)


def all_ready(api: Api) -> bool:
    """Whether KWOK plays every node. Raises ApiError."""
    return all(is_ready(node) for node in api.get(NODES)["items"])


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether the node has the condition Ready."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)
