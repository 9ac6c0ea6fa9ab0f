"""`run vacant`: begin the end of a team's namespace, once no vCluster is in it.

A team with a stack of its own is removed by that stack. Without this, the platform's grant would
take it along, with everything that runs in it. In a namespace that ends nothing new is made: what
bounds it is removed after this, while Kubernetes takes its time for the namespace.
"""

from __future__ import annotations

import os
import time
from typing import Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.probes.wait import NotReadyError, cluster, reported, say

_SECONDS: Final = 20.0  # a release that was just uninstalled is gone by then


@reported
def main() -> None:
    """Exit 1, with what to do, while a vCluster is there that nobody deletes; else delete the
    namespace, and do not wait. The engine deletes it too, after its bounds, and waits.
    """
    namespace = os.environ["VACANT_NAMESPACE"]
    api, path = cluster(), f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
    until = time.monotonic() + _SECONDS
    while True:
        try:
            there = api.list(path, labelSelector="app=vcluster")
        except KubeError as why:
            raise NotReadyError(
                f"namespace {namespace} cannot be looked at: {complaint(why)}"
            ) from None
        found = [it for it in there if "deletionTimestamp" not in it["metadata"]]
        if not found:
            return _begin_the_end(api, namespace)
        if time.monotonic() > until:
            break
        time.sleep(0.5)
    team = namespace.removeprefix("team-")
    raise NotReadyError(
        f"namespace {namespace} holds the vCluster {found[0]['metadata']['name']}, so it stays:"
        f" destroy the stack of team {team} first (pulumi destroy there), or put"
        f" kai-fleet:teamStacks.{team} back"
    )


def _begin_the_end(api: Api, namespace: str) -> None:
    try:
        api.delete(f"/api/v1/namespaces/{namespace}")
    except KubeError as why:
        say(f"warning: namespace {namespace} is left to the engine ({complaint(why)})")


if __name__ == "__main__":
    main()
