"""The steps of the program that this version replaces: they go with it."""

import io
import json
import os
import time
from contextlib import redirect_stdout

from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.probes import vcluster
from kai_fleet.probes.wait import NotReadyError, cluster, say
from kai_fleet.releases import helm_record

_VACANT_SECONDS = 20.0  # a release that was just uninstalled is gone by then


def wait() -> None:
    """Print `https://…` on stdout, everything else on stderr."""
    with redirect_stdout(io.StringIO()) as printed:
        vcluster.wait()
    print(json.loads(printed.getvalue())["server"])


def look_at_record() -> None:
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


def end_vacant() -> None:
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

    start = time.monotonic()
    while (names := vclusters()) and time.monotonic() - start <= _VACANT_SECONDS:
        time.sleep(0.25)
    if names:
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
