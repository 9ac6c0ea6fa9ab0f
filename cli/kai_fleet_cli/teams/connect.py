"""A platform's host cluster and its engine, for commands that only look: nothing is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.display.screen import Say
from kai_fleet_cli.engine.checkout import running_sandbox
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, engine_path
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams.lookup import PlatformFile
from kubectl_fleet.errors import UserError


@dataclass(frozen=True)
class Connected:
    """A platform's cluster and the engine's variables; None, with a note, for what is not there."""

    host: cluster_reader.ClusterReader | None = None
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    note: str = ""


def to_platform(platform: PlatformFile, say: Say) -> Connected:
    """The parts of a platform that are there now."""
    cluster = platform.raw.get("cluster")
    cluster = cluster if isinstance(cluster, Mapping) else {}
    context: Any = cluster.get("context")
    if context == SANDBOX_CONTEXT:
        try:
            running = running_sandbox()
        except UserError as error:
            return Connected(note=str(error))
        return Connected(cluster_reader.ClusterReader(context, running.kubeconfig), running.env())
    host = cluster_reader.ClusterReader(str(context)) if context else None
    note = "" if host else f"the kubeconfig of {platform.file.name} is {reading.SECRET}"
    try:
        return Connected(host, {"PATH": engine_path(say)}, note)
    except UserError as error:
        return Connected(host, note=str(error))


def variables(platform: PlatformFile, say: Say) -> Mapping[str, str]:
    """The engine's variables for a platform; raises UserError where there is no engine."""
    connected = to_platform(platform, say)
    if connected.variables is None:
        raise UserError(connected.note)
    return connected.variables
