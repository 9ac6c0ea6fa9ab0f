"""Which cluster it is: the UID of its namespace `kube-system`, which is made once in its life."""

import re
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.values import get

SYSTEM: Final = "kube-system"
ANOTHER: Final = "is another one than the last update saw"  # a vCluster by the UID
LOOK_SECONDS: Final = 3.0  # for a look that a run waits for: who gives no answer says nothing
_UID: Final = re.compile(r"[0-9a-zA-Z-]{1,64}")


def uid_of(api: Api) -> str:
    """The UID of a cluster; "" where it answers with none. A tenant's answer is not trusted.

    Raises KubeError where it does not answer.
    """
    uid = get(api.get(f"/api/v1/namespaces/{SYSTEM}"), "metadata", "uid")
    return uid if isinstance(uid, str) and _UID.fullmatch(uid) else ""
