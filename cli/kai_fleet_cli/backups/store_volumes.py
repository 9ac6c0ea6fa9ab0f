"""The volume claims of a vCluster's store, made anew where they are gone."""

from http import HTTPStatus

from kai_fleet.cluster.kube.api import Object
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.values import get
from kai_fleet_cli.backups.control_plane import ControlPlane
from kai_fleet_cli.backups.host import until
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError

_STOP_SECONDS = 180.0


def provide(plane: ControlPlane, *, anew: bool) -> None:
    """Create the claims of a store that are missing.

    Its StatefulSet does not create them again: the guard refuses it. If an etcd has lost some of
    its members, or with `anew`, all begin anew: a member without its volume cannot join the others.

    Args:
        plane: The control plane, which does not run.
        anew: All members begin anew.

    Raises UserError if there is no control plane, or if a claim that is being deleted stays.
    """
    keeper = plane.etcd() or plane.workload()
    if keeper is None:
        raise UserError(f"team {plane.team} has no control plane to restore into")
    claims: dict[str, Object] = {}
    for template in keeper["spec"].get("volumeClaimTemplates") or []:
        beginning = f"{template['metadata']['name']}-{keeper['metadata']['name']}"
        for number in range(keeper["spec"].get("replicas", 1)):
            claims[f"{beginning}-{number}"] = template
    for name in claims:
        _wait_while_deleted(plane, name)
    missing = [name for name in claims if _find(plane, name) is None]
    if anew or 0 < len(missing) < len(claims):
        say(f"all members of the store of {keeper['metadata']['name']} begin anew")
        _delete(plane, keeper, list(claims))
        missing = list(claims)
    labels = keeper["spec"]["selector"]["matchLabels"]
    for name in missing:
        metadata = {"name": name, "labels": labels}
        _create(plane, {"metadata": metadata, "spec": claims[name]["spec"]})


def _create(plane: ControlPlane, claim: Object) -> None:
    """Create a claim, unless its StatefulSet was faster: the guard lets it make new ones."""
    say(f"creating claim {claim['metadata']['name']}, which is gone")
    try:
        plane.api.post(_claims(plane), claim)
    except RefusedError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise


def _claims(plane: ControlPlane) -> str:
    """The path of the claims in the namespace."""
    return f"{plane.path}/persistentvolumeclaims"


def _find(plane: ControlPlane, name: str) -> Object | None:
    return plane.api.find(f"{_claims(plane)}/{name}")


def _wait_while_deleted(plane: ControlPlane, name: str) -> None:
    late = f"claim {name} is being deleted, and a pod still uses it"

    def is_settled() -> bool:
        return not get(_find(plane, name), "metadata", "deletionTimestamp")

    until(is_settled, _STOP_SECONDS, late)


def _delete(plane: ControlPlane, keeper: Object, names: list[str]) -> None:
    """Delete claims, and the pods that use them, and wait until the claims are gone."""
    for number, name in enumerate(names):
        plane.api.delete(f"{_claims(plane)}/{name}")
        pod = f"{keeper['metadata']['name']}-{number}"
        plane.api.delete(f"{plane.path}/pods/{pod}")
    for name in names:
        _wait_while_deleted(plane, name)
