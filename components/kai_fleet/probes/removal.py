"""What comes before a vCluster's release is changed or removed, and before its namespace goes."""

import os
from collections.abc import Iterator
from typing import Final

from kai_fleet.probes.wait import NotReadyError, cluster, say, still_missing
from kai_fleet.releases import helm_record
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import KubeError, complaint

_VACANT_SECONDS: Final = 20.0  # a release that was just uninstalled is gone by then


def record() -> None:
    """Stop where Helm's records of a vCluster's release are not what its chart makes.

    Helm believes its records, and a tenant may have written one before the guard stood. Where they
    cannot be read, Helm cannot read them either. Raises NotReadyError, with what to do.
    """
    namespace, _, release = os.environ["RECORD_RELEASE"].partition("/")
    try:
        secrets = cluster().list(
            f"/api/v1/namespaces/{namespace}/secrets",
            labelSelector=helm_record.SELECTOR.format(release),
        )
    except KubeError as error:
        problem = complaint(error)
        say(f"warning: Helm's record of {namespace}/{release} is not looked at ({problem})")
        return
    if records := helm_record.forged(secrets, release, namespace):
        sentence = helm_record.sentence(records, release, namespace)
        raise NotReadyError(f"{sentence}, and run this again. Nothing was done to the release.")


def pods() -> None:
    """Begin the end of what a vCluster leaves in its namespace: pods, volumes, its Secrets.

    Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take
    time to end again only after half of their grace period. Pods that end meanwhile make it go at
    once. Where the namespace stays, because the platform keeps it for the team's stack, a volume
    that stayed would bring the old state back (V10). Nothing is waited for; what hinders it is
    reported and hinders nothing.
    """
    namespace = os.environ["PODS_NAMESPACE"]
    team = os.environ.get("PODS_VCLUSTER", "")
    try:
        api = cluster()
        for path in _left_behind(api, f"/api/v1/namespaces/{namespace}", team):
            api.delete(path)
    except (NotReadyError, KubeError) as error:
        problem = complaint(error) if isinstance(error, KubeError) else str(error)
        say(f"warning: pods of {namespace} are left to Kubernetes ({problem})")


def _left_behind(api: Api, space: str, team: str) -> Iterator[str]:
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


def vacant() -> None:
    """Begin the end of a team's namespace, once no vCluster is in it that stays.

    A team with a stack of its own is removed by that stack. Without this, the platform's grant
    would take it along, with everything that runs in it. In a namespace that ends nothing new is
    made: what bounds it is removed after this, while Kubernetes takes its time for the namespace.
    The engine deletes it too, after its bounds, and waits. One that others made stays. Raises
    NotReadyError, with what to do.
    """
    namespace = os.environ["VACANT_NAMESPACE"]
    api, path = cluster(), f"/apis/apps/v1/namespaces/{namespace}"

    def vclusters() -> list[str]:
        try:
            sets = [
                it
                for kind in ("statefulsets", "deployments")  # without a volume of its own
                for it in api.list(f"{path}/{kind}", labelSelector="app=vcluster")
            ]
        except KubeError as error:
            raise NotReadyError(
                f"namespace {namespace} cannot be looked at: {complaint(error)}"
            ) from None
        return [it["metadata"]["name"] for it in sets if "deletionTimestamp" not in it["metadata"]]

    if names := still_missing(vclusters, _VACANT_SECONDS):
        team = namespace.removeprefix("team-")
        raise NotReadyError(
            f"namespace {namespace} holds the vCluster {names[0]}, so it stays: destroy the stack"
            f" of team {team} first (pulumi destroy there), or put kai-fleet:teamStacks.{team} back"
        )
    if os.environ.get("VACANT_NAMESPACE_STAYS"):
        return  # others made it
    try:
        api.delete(f"/api/v1/namespaces/{namespace}")
    except KubeError as error:
        say(f"warning: namespace {namespace} is left to the engine ({complaint(error)})")
