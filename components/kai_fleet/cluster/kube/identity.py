"""The identity of a cluster: the UID of its namespace `kube-system`, which never changes."""

import re
from contextlib import closing

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import Fields
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, kubeconfig_of_secret
from kai_fleet.values import get

SYSTEM = "kube-system"
# Completes a sentence about a vCluster whose UID differs from the recorded one.
ANOTHER = "is another one than the last update saw"
# Timeout for reading an identity while a command waits; without an answer it stays unknown.
LOOK_SECONDS = 3.0
_UID = re.compile(r"[0-9a-zA-Z-]{1,64}")


def uid_of(api: Api) -> str:
    """The UID of a cluster; "" if the answer has none, or one that is no UID by its form.

    Raises KubeError if the API server refuses or does not answer.
    """
    uid = get(api.get(f"/api/v1/namespaces/{SYSTEM}"), "metadata", "uid")
    if isinstance(uid, str) and _UID.fullmatch(uid):
        return uid
    return ""  # a tenant's API server may answer anything


def uid_at(server: str, data: Fields) -> str:
    """The UID of the vCluster at a URL, by the `data` of its Secret.

    "" if it gives none within LOOK_SECONDS, or if vCluster did not write the Secret.
    """
    try:
        kubeconfig = kubeconfig_of_secret(data, server, "look")
        with closing(Api.of_kubeconfig(kubeconfig, total_seconds=LOOK_SECONDS)) as inside:
            return uid_of(inside)
    except (KubeError, TenantKubeconfigError):
        return ""
