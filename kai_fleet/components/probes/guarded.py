"""`run guarded`: wait until the guards of a team's namespace hold.

An API server takes a second or so until a new policy or binding holds, and until it has the bounds
that they name: before the first nothing is judged, before the last everything is denied, the
objects of Helm's releases included.
"""

from __future__ import annotations

import os
from typing import Any, Final

from kai_fleet.components.probes.wait import cluster, reported, until_ready
from kai_fleet.kube.api import Api, Object
from kai_fleet.kube.errors import Refused, complaint

_SECONDS: Final = 60.0
_NO_BOUNDS: Final = "no params found for policy binding"
_ENV: Final = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
# It asks for every GPU, and for ten years to end: each of the guards denies it.
_POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "kai-fleet-probe"},
    "spec": {
        "terminationGracePeriodSeconds": 315_360_000,
        "containers": [{"name": "probe", "image": "probe", "env": [_ENV]}],
    },
}
_MAP: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kai-fleet-probe"},
    "data": {"probe": ""},
}


@reported
def main() -> None:
    """Exit 0 when a pod that no guard lets in is denied, and what none is about passes.

    Nothing is made: both are asked as dry runs.
    """
    namespace = os.environ["GUARDED_NAMESPACE"]
    api, at = cluster(), f"/api/v1/namespaces/{namespace}"

    def missing() -> list[str]:
        found = []
        # Whoever refuses it, be it a webhook of the cluster's: it is not let in.
        if not _refusal(api, f"{at}/pods", _POD):
            found.append("the guards of pods")
        if _NO_BOUNDS in _refusal(api, f"{at}/configmaps", _MAP):
            found.append("the team's bounds")
        return found

    look = "kubectl get validatingadmissionpolicybindings"
    until_ready(f"guard of {namespace}", missing, _SECONDS, look)


def _refusal(api: Api, path: str, body: Object) -> str:
    """Why an object would be refused; "" where it would be made."""
    try:
        api.post(path, body, dryRun="All")
    except Refused as why:
        return complaint(why)
    return ""


if __name__ == "__main__":
    main()
