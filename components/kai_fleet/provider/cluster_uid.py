"""The function `kai-fleet:index:clusterUid`: which cluster it is that answers at an address."""

from __future__ import annotations

import re
from typing import Final

from pulumi.provider.experimental.property_value import PropertyValue

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.kube.kubeconfig import Connection
from kai_fleet.provider.values import properties

_SECONDS: Final = 10.0
_UID: Final = re.compile(r"[0-9a-zA-Z-]{1,64}")


def read(way: Connection) -> dict[str, PropertyValue]:
    """The `uid` of the namespace `kube-system`; or the `problem`, why it cannot be had.

    Kubernetes makes that namespace once in a cluster's life, so its UID stands for the cluster.
    """
    try:
        found = Api(way, _SECONDS).get("/api/v1/namespaces/kube-system")
    except KubeError as why:
        return properties({"problem": complaint(why)})
    # Of a vCluster, its tenant's own API server says so: nothing else may come of it.
    uid = str((found.get("metadata") or {}).get("uid"))
    if not _UID.fullmatch(uid):
        return properties({"problem": "the namespace kube-system has no UID there"})
    return properties({"uid": uid})
