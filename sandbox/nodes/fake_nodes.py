"""The host's nodes: fake ones, in pools by team, from nodes.yaml."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from sandbox.control_plane.kube_api import AdminApi, KubeError

POOLS: Final = Path(__file__).with_name("nodes.yaml")
_FAKE: Final = yaml.safe_load(Path(__file__).with_name("fake_node.yaml").read_text())
POOL_LABEL: Final = "kai-fleet/pool"
NODES: Final = "/api/v1/nodes"
# What every real node has; vCluster's chart asks for the storage.
EVERY_NODE: Final = {"pods": "110", "ephemeral-storage": "500Gi"}


def host_nodes() -> Iterator[dict[str, Any]]:
    """The Node objects of nodes.yaml."""
    for pool in yaml.safe_load(POOLS.read_text()):
        for number in range(1, pool["nodes"] + 1):
            yield _node(f"{pool['pool']}-{number}", pool)


def _node(name: str, pool: Mapping[str, Any]) -> dict[str, Any]:
    labels = {POOL_LABEL: pool["pool"]}
    resources = {**EVERY_NODE, "cpu": pool["cpu"], "memory": pool["memory"]}
    if gpus := pool.get("gpus"):
        resources["nvidia.com/gpu"] = str(gpus["count"])
        labels |= {f"nvidia.com/gpu.{key}": str(value) for key, value in gpus.items()}
        labels["nvidia.com/gpu.present"] = "true"
    if slices := pool.get("slices"):
        resources |= {f"nvidia.com/{name}": str(count) for name, count in slices.items()}
        labels["nvidia.com/mig.strategy"] = "mixed"
    return fake_node(name, labels, resources, resources, [])


def fake_node(
    name: str,
    labels: Mapping[str, str],
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
    taints: list[dict[str, Any]],
) -> dict[str, Any]:
    """A node that KWOK plays. Its address is loopback, where node ports are served."""
    node: dict[str, Any] = copy.deepcopy(_FAKE)
    metadata, status = node["metadata"], node["status"]
    metadata["name"] = name
    metadata["labels"] |= {"kubernetes.io/hostname": name, **labels}
    node["spec"] = {"taints": taints}
    status["addresses"].append({"type": "Hostname", "address": name})
    status |= {"capacity": dict(capacity), "allocatable": dict(allocatable)}
    return node


def ensure_host_nodes(api: AdminApi) -> None:
    """Create the nodes that are missing. Raises KubeError."""
    existing = {node["metadata"]["name"] for node in api.get(NODES)["items"]}
    for node in host_nodes():
        if node["metadata"]["name"] not in existing:
            api.post(NODES, node)


def all_ready(api: AdminApi) -> bool:
    """Whether KWOK plays every node; an API that does not answer plays none."""
    try:
        return all(KubeObject(node).is_true("Ready") for node in api.get(NODES)["items"])
    except KubeError:
        return False
