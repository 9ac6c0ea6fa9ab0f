"""`run pods`: begin the end of what a vCluster leaves in its namespace: pods, volumes, its Secrets.

Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take time
to end again only after half of their grace period. Pods that end meanwhile make it go at once.
Where the namespace stays, because the platform keeps it for the team's stack, a volume that stayed
would bring the old state back (V10).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.probes.wait import NotReadyError, cluster, say


def main() -> None:
    """Delete them, and do not wait; what hinders it is said and hinders nothing."""
    namespace = os.environ["PODS_NAMESPACE"]
    team = os.environ.get("PODS_VCLUSTER", "")
    try:
        api = cluster()
        for path in _left(api, f"/api/v1/namespaces/{namespace}", team):
            api.delete(path)
    except NotReadyError as why:
        _leave(namespace, str(why))
    except KubeError as why:
        _leave(namespace, complaint(why))


def _left(api: Api, space: str, team: str) -> Iterator[str]:
    for pod in api.list(f"{space}/pods"):
        yield f"{space}/pods/{pod['metadata']['name']}"
    if not team:
        return
    for claim in api.list(f"{space}/persistentvolumeclaims"):
        yield f"{space}/persistentvolumeclaims/{claim['metadata']['name']}"
    # Without owners, as in host mode, what was synced and the way in stay behind, too (V4).
    synced = f"vcluster.loft.sh/managed-by={team}"
    for kind in ("services", "configmaps", "secrets"):
        for item in api.list(f"{space}/{kind}", labelSelector=synced):
            yield f"{space}/{kind}/{item['metadata']['name']}"
    for name in (f"vc-{team}", f"{team}-certs"):
        yield f"{space}/secrets/{name}"


def _leave(namespace: str, why: str) -> None:
    say(f"warning: pods of {namespace} are left to Kubernetes ({why})")


if __name__ == "__main__":
    main()
