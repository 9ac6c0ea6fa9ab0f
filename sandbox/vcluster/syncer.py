"""What a vCluster takes over from its host: nodes and RuntimeClasses."""

from collections.abc import Iterable, Mapping
from typing import Final

from sandbox.control_plane.kube_api import AdminApi, Object
from sandbox.nodes.fake_nodes import NODES, fake_node

RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"


def selected(nodes: Iterable[Object], labels: Mapping[str, str]) -> list[Object]:
    """The nodes that carry all these labels: every node, where none are asked for."""
    return [
        node
        for node in nodes
        if all(node["metadata"].get("labels", {}).get(key) == labels[key] for key in labels)
    ]


def sync_nodes(inside: AdminApi, host: Iterable[Object]) -> None:
    """Make the vCluster's nodes those of the host: labels, taints, capacity, allocatable.

    Conditions are left to the vCluster's own KWOK. Raises KubeError.
    """
    there = {node["metadata"]["name"]: node for node in inside.get(NODES)["items"]}
    for node in host:
        name = node["metadata"]["name"]
        wanted, old = _copy(node), there.pop(name, None)
        if old is None or _copy(old) != wanted:
            inside.apply(f"{NODES}/{name}", wanted)
            inside.apply(f"{NODES}/{name}/status", wanted)
    for name in there:
        inside.delete(f"{NODES}/{name}")


def _copy(node: Object) -> Object:
    status = node.get("status", {})
    return fake_node(
        node["metadata"]["name"],
        node["metadata"].get("labels", {}),
        status.get("capacity", {}),
        status.get("allocatable", {}),
        node.get("spec", {}).get("taints", []),
    )


def sync_runtime_classes(inside: AdminApi, host: Iterable[Object]) -> None:
    """Make the vCluster's RuntimeClasses those of the host. Raises KubeError."""
    there = {item["metadata"]["name"]: item for item in inside.get(RUNTIME_CLASSES)["items"]}
    for item in host:
        old = there.pop(item["metadata"]["name"], None)
        if old is not None and old["handler"] != item["handler"]:
            inside.delete(f"{RUNTIME_CLASSES}/{old['metadata']['name']}")  # it cannot be changed
            old = None
        if old is None:
            kept = {key: item[key] for key in ("handler", "overhead", "scheduling") if key in item}
            metadata = {key: item["metadata"].get(key) for key in ("name", "labels")}
            body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata}
            inside.ensure(RUNTIME_CLASSES, body | kept)
    for name in there:
        inside.delete(f"{RUNTIME_CLASSES}/{name}")
