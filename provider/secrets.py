"""The function `kai-fleet:index:secret`: what a Secret of a cluster holds."""

from __future__ import annotations

from typing import Any, Final

from kubernetes import client

from provider.http_api import UNANSWERED, HttpApi, complaint
from provider.wire import Secret

_SECONDS: Final = 30.0


def read(api: client.ApiClient, namespace: str, name: str) -> dict[str, Any]:
    """Its `data`, in base64 and secret; or the `problem`, what there is to say of the Secret.

    A problem is an answer, not a failure: the engine would add its own words to that.
    """
    try:
        found = HttpApi(api, _SECONDS).find(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    except UNANSWERED as why:
        return {"problem": f"cannot be read: {complaint(why)}"}
    if found is None:
        return {"problem": "is not there"}
    return {"data": Secret(found.get("data") or {})}
