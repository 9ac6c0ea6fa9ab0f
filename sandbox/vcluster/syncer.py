"""Objects that pass between a vCluster and its host.

Nodes and RuntimeClasses are copied from the host; the kubeconfig and warnings are written to it.
"""

import base64
import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from sandbox.control_plane.command_lines import ControlPlane
from sandbox.control_plane.kube_api import AdminApi, Object
from sandbox.nodes.fake_nodes import NODES, fake_node
from sandbox.vcluster.declared import VclusterConfig

_WARNING: Final = Path(__file__).with_name("warning.yaml")
_VERBS: Final = ("list", "watch")
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"


def selected(nodes: Iterable[Object], labels: Mapping[str, str]) -> list[Object]:
    """The nodes that carry all these labels: every node for no labels."""
    return [
        node
        for node in nodes
        if all(node["metadata"].get("labels", {}).get(key) == labels[key] for key in labels)
    ]


def sync_nodes(inside: AdminApi, host: Iterable[Object]) -> None:
    """Make the vCluster's nodes those of the host: labels, taints, capacity, allocatable.

    Conditions are left to the vCluster's own KWOK. Raises KubeError.
    """
    existing = {node["metadata"]["name"]: node for node in inside.get(NODES)["items"]}
    for node in host:
        name = node["metadata"]["name"]
        desired, old = _copy(node), existing.pop(name, None)
        if old is None or _copy(old) != desired:
            inside.apply(f"{NODES}/{name}", desired)
            inside.apply(f"{NODES}/{name}/status", desired)
    for name in existing:
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
    existing = {item["metadata"]["name"]: item for item in inside.get(RUNTIME_CLASSES)["items"]}
    for item in host:
        old = existing.pop(item["metadata"]["name"], None)
        if old is not None and old["handler"] != item["handler"]:
            inside.delete(f"{RUNTIME_CLASSES}/{old['metadata']['name']}")  # it cannot be changed
            old = None
        if old is None:
            kept = {key: item[key] for key in ("handler", "overhead", "scheduling") if key in item}
            metadata = {key: item["metadata"].get(key) for key in ("name", "labels")}
            body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata}
            inside.ensure(RUNTIME_CLASSES, body | kept)
    for name in existing:
        inside.delete(f"{RUNTIME_CLASSES}/{name}")


def may_list_pods(host: AdminApi, namespace: str, account: str) -> bool:
    """Whether an account may list and watch the pods of all namespaces. Raises KubeError."""
    who = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
    }
    specs = [who | {"resourceAttributes": {"resource": "pods", "verb": verb}} for verb in _VERBS]
    return all(host.post(_REVIEWS, {"spec": spec})["status"]["allowed"] for spec in specs)


def access_secret(plane: ControlPlane, config: VclusterConfig, service: Object) -> Object:
    """The Secret `vc-NAME`: a kubeconfig for the server that the configuration names."""
    name, admin = service["metadata"]["name"], plane.authority.path("admin")
    data = {
        "config": plane.authority.kubeconfig("admin", config.server, config.context).encode(),
        "certificate-authority": plane.authority.pair.certificate.read_bytes(),
        "client-certificate": admin.certificate.read_bytes(),
        "client-key": admin.key.read_bytes(),
        "token": b"",
    }
    metadata: dict[str, Any] = {"name": f"vc-{name}", "labels": {"app": "vcluster"}}
    metadata |= owned(config, service)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def owned(config: VclusterConfig, service: Object) -> Object:
    """Metadata of a Secret that is deleted with the chart's Service.

    Empty where owners are off: then it is deleted with the namespace only.
    """
    if not config.set_owner:
        return {}
    owner = {"apiVersion": "v1", "kind": "Service"}
    owner |= {key: service["metadata"][key] for key in ("name", "uid")}
    return {"ownerReferences": [owner]}


def warning(namespace: str, name: str, reason: str, message: str) -> Object:
    """An event of the vCluster's StatefulSet, for whoever describes it."""
    now = datetime.datetime.now(datetime.UTC)
    event: Object = yaml.safe_load(_WARNING.read_text(encoding="utf-8"))
    event["metadata"] = {"name": f"{name}.{now.timestamp():.6f}"}
    event["involvedObject"] |= {"name": name, "namespace": namespace}
    event["firstTimestamp"] = event["lastTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return event | {"reason": reason, "message": message[:1000]}
