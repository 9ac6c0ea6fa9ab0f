"""The functions `secret` and `existing` of `kai-fleet:index`.

What there is to say of a cluster is an answer, `problem`, not a failure: to that the engine would
add its own words.
"""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, UnreachableError, complaint
from kai_fleet.kube.kubeconfig import Connection
from kai_fleet.kube.text import plain

_SECRET_SECONDS: Final = 30.0
_MOST: Final = 8 << 20  # bytes: etcd holds 1.5 MiB of an object
_EXISTING_SECONDS: Final = 10.0
NODES: Final = "/api/v1/nodes"
_FEATURES: Final = "feature.node.kubernetes.io/"


def read_secret(way: Connection, namespace: str, name: str) -> dict[str, Any]:
    """The `data` of a Secret, in base64; or the `problem` with it."""
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    try:
        content = Api(way, _SECRET_SECONDS, most=_MOST).find(path)
    except KubeError as error:
        return {"problem": f"cannot be read: {complaint(error)}"}
    if content is None:
        return {"problem": "is not there"}
    return {"data": content.get("data") or {}}


def read_existing(way: Connection, path: str) -> dict[str, Any]:
    """Whether an object is `there` on the host; its `handler` and `labels`, where it has them.

    Of a PriorityClass also its `value`, of a Queue its `spec`, and of what Helm made the `release`.
    Of the path of all nodes the `nodes`, each with its `labels` and `taints`.
    Or the `problem`, why that cannot be read; `away` where the cluster does not answer at all.
    """
    api = Api(way, _EXISTING_SECONDS, in_all=_EXISTING_SECONDS, most=_MOST)
    try:
        if path == NODES:
            return {"there": True, "nodes": [_node(node) for node in api.list(NODES)]}
        found = api.find(path)
    except KubeError as error:
        return {"problem": complaint(error), "away": isinstance(error, UnreachableError)}
    if found is None:
        return {"there": False}
    metadata = found.get("metadata") or {}
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    answer: dict[str, Any] = {
        "there": True,
        "handler": plain(str(found.get("handler") or ""), 100),
        "labels": {str(key): plain(str(value), 100) for key, value in labels.items()},
    }
    if "/priorityclasses/" in path:
        answer["value"] = found.get("value")
    if path.startswith("/apis/scheduling.run.ai/"):
        answer["spec"] = found.get("spec") or {}
    if (release := notes.get("meta.helm.sh/release-name")) is not None:
        answer["release"] = plain(f"{notes.get('meta.helm.sh/release-namespace')}/{release}", 200)
    return answer


def _node(item: Mapping[str, Any]) -> dict[str, Any]:
    """What pools are told by: not what feature discovery finds, a hundred labels of each node."""
    labels = (item.get("metadata") or {}).get("labels") or {}
    taints = (item.get("spec") or {}).get("taints") or ()
    return {
        "labels": {key: value for key, value in labels.items() if not key.startswith(_FEATURES)},
        "taints": [
            {key: str(taint.get(key) or "") for key in ("key", "value", "effect")}
            for taint in taints
        ],
    }
