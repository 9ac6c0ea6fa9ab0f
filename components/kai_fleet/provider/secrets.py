"""The function `kai-fleet:index:secret`: what a Secret of a cluster holds."""

from __future__ import annotations

from typing import Final

from pulumi.provider.experimental.property_value import PropertyValue

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.kube.kubeconfig import Connection
from kai_fleet.provider.values import properties, secret

_SECONDS: Final = 30.0
_MOST: Final = 8 << 20  # bytes: etcd holds 1.5 MiB of an object


def read(way: Connection, namespace: str, name: str) -> dict[str, PropertyValue]:
    """Its `data`, in base64 and secret; or the `problem`, what there is to say of the Secret.

    A problem is an answer, not a failure: the engine would add its own words to that.
    """
    try:
        found = Api(way, _SECONDS, most=_MOST).find(
            f"/api/v1/namespaces/{namespace}/secrets/{name}"
        )
    except KubeError as why:
        return properties({"problem": f"cannot be read: {complaint(why)}"})
    if found is None:
        return properties({"problem": "is not there"})
    return {"data": secret(found.get("data") or {})}
