"""The functions `secret` and `existing` of `kai-fleet:index`.

Errors of a cluster are returned as `problem`, not raised: the engine would wrap a failure in its
own words.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, UnreachableError, complaint
from kai_fleet.cluster.kube.kubeconfig import Connection, connection
from kai_fleet.names import SECRET

_SECONDS: Final = 20.0


@lru_cache
def opened(content: str, context: str) -> Connection:
    """Open each cluster once, which may take a second. Raises UnusableKubeconfigError."""
    return connection(content, context=context)


def answer(function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function. Its result has `problem` if the cluster refused, and `away` if it did not
    answer.
    """
    of_secret = function == SECRET
    try:
        content, context = (arguments.get(key) or "" for key in ("kubeconfig", "context"))
        api = Api(opened(content, context), in_all=_SECONDS)
        if of_secret:
            return read_secret(api, arguments["namespace"], arguments["name"])
        return read_existing(api, arguments["path"])
    except KubeError as error:
        problem = f"{'cannot be read: ' if of_secret else ''}{complaint(error)}"
        return {"problem": problem, "away": isinstance(error, UnreachableError)}


def read_secret(api: Api, namespace: str, name: str) -> dict[str, Any]:
    """The `data` of a Secret, in base64; or `problem` if it does not exist."""
    content = api.find(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    return {"problem": "is not there"} if content is None else {"data": content.get("data") or {}}


def read_existing(api: Api, path: str) -> dict[str, Any]:
    """Whether an object is `there` on the host, with `handler`, `value`, `labels` and `release`."""
    found = api.find(path)
    if found is None:
        return {"there": False}
    metadata = found.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    keys = ("namespace", "name")
    release = "/".join(str(notes.get(f"meta.helm.sh/release-{key}", "")) for key in keys)
    return {
        "there": True,
        "handler": str(found.get("handler") or ""),
        "value": found.get("value"),
        "labels": metadata.get("labels") or {},
        "release": release,
    }
