"""Take a backup of a team's vCluster from its control plane."""

import base64
import hashlib
import secrets
from importlib.resources import files
from typing import Final

from kai_fleet.values import get
from kai_fleet_cli.backups.backup import Backup, of_snapshot
from kai_fleet_cli.backups.control_plane import ControlPlane, chart_version
from kai_fleet_cli.backups.host import Host
from kai_fleet_cli.errors import UserError

_SCRIPT: Final = files(__package__).joinpath("snapshot.sh").read_text()
_SECONDS: Final = "600"
_DIGITS: Final = 64  # of a SHA-256; a line break follows


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
