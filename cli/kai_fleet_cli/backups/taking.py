"""Take backups of teams' vClusters from their control planes, by hand or before an update."""

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from kai_fleet.cluster.kube.api import Object
from kai_fleet.names import RELEASE
from kai_fleet.releases.chart_stores import kubernetes_of, store_of
from kai_fleet.values import get
from kai_fleet_cli.backups import files as backup_files
from kai_fleet_cli.backups.backup import Backup, of_snapshot
from kai_fleet_cli.backups.control_plane import ControlPlane, chart_version
from kai_fleet_cli.backups.host import Host, host_of
from kai_fleet_cli.display import terminal
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.state import State
from kai_fleet_cli.stack_file import reading

_SCRIPT = files(__package__).joinpath("snapshot.sh").read_text()
_SECONDS = "600"
_DIGITS = 64  # of a SHA-256; a line break follows


def take(host: Host, team: str) -> Backup:
    """Take a backup of a team's vCluster; it goes on meanwhile.

    Raises:
        UserError: Its control plane is not Ready, a Secret of it is missing, or the snapshot fails
            or arrives cut.
        KubeError: The host does not answer, or refuses.
    """
    plane = ControlPlane(host.api, team)
    pod = plane.ready_pod()
    if pod is None:
        raise UserError(
            f"the control plane of team {team} is not Ready, so its store cannot be read; look"
            " with: .venv/bin/fleet doctor"
        )
    certificates = _secret(plane, f"{team}-certs")
    config = _secret(plane, f"vc-config-{team}")["config.yaml"]
    return of_snapshot(
        team,
        plane.namespace,
        chart_version(plane.workload() or {}),
        _snapshot(host, plane, pod),
        certificates,
        base64.b64decode(config).decode(),
    )


def write(host: Host, team: str, file: Path, key: Path) -> Backup:
    """Take a backup, write it into a file that only you can read, and return it.

    A line says where it is. Raises as `take` and `files.write` do.
    """
    taken = take(host, team)
    backup_files.write(taken, file, key)
    record = taken.record
    terminal.result(f"{file}: {record['keys']} keys of team {team} at {record['taken']}")
    return taken


def new_versions(state: State, planned: Sequence[Registered]) -> dict[str, str]:
    """What is new, by team, of each vCluster that has started and goes to another version.

    That is the version of its chart, of the Kubernetes inside, and the type of its store, as in
    `0.36.1`; several with `-` between them.
    """
    teams = {vcluster.urn: team for team, vcluster in state.vclusters.items()}
    found = dict[str, str]()
    for release in planned:
        before = state.resources.get(release.urn)
        if release.type == RELEASE and release.parent in teams and before:
            new = _versions(release.inputs) - _versions(before["inputs"])
            if new:
                found[teams[release.parent]] = "-".join(sorted(new))
    return found


def _versions(release: Object) -> set[str]:
    """The versions of a vCluster in the inputs of its release, and the type of its store."""
    values = get(release, "values")
    return {release["version"], kubernetes_of(values) or "defaults", store_of(values).type}


def write_before_update(stack: str, versions: Mapping[str, str], otherwise: str) -> None:
    """Write backups of vClusters into the folder `backups` beside the stack's file.

    Args:
        stack: The stack.
        versions: What is new, by team. Without any the host is not asked.
        otherwise: The command that updates without a backup, for the message.

    Raises:
        UserError: As of `write` and `host_of`, also for a host that refuses.
    """
    if not versions:
        return
    folder = reading.path_of(stack).with_name("backups")
    try:
        with host_of(stack) as host:
            for team, version in versions.items():
                file = backup_files.taken_now(folder, f"{stack}-{team}-before-{version}")
                write(host, team, file, backup_files.KEY_FILE)
    except UserError as error:
        raise UserError(
            f"nothing is changed, because no backup is taken before: {error}\nWithout one:"
            f" {otherwise}"
        ) from None


def _snapshot(host: Host, plane: ControlPlane, pod: str) -> bytes:
    """A snapshot of the store. Raises UserError if it fails, or arrives cut."""
    name = f"kai-fleet-{secrets.token_hex(8)}"
    printed = host.run(*plane.exec_words(pod), "sh", "-c", _SCRIPT, "sh", name, _SECONDS)
    checksum = printed[:_DIGITS].decode()
    snapshot = printed[_DIGITS + 1 :]
    if hashlib.sha256(snapshot).hexdigest() != checksum:
        raise UserError(f"the snapshot of team {plane.team} arrived cut; run the command again")
    return snapshot


def _secret(plane: ControlPlane, name: str) -> dict[str, str]:
    """The data of a Secret in the team's namespace, base64. Raises KubeError without it."""
    data: dict[str, str] = get(plane.api.get(f"{plane.path}/secrets/{name}"), "data") or {}
    return data
