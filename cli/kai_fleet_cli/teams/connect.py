"""A platform's host cluster and its engine, for commands that only look: nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.checkout import running_sandbox
from kai_fleet_cli.display.screen import Say
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, engine_path
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams.lookup import Platform


@dataclass(frozen=True)
class Connected:
    """A platform's cluster and the engine's variables; None, with a note, for what is not there."""

    host: cluster_reader.Cluster | None = None
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    note: str = ""


def to_platform(platform: Platform, say: Say) -> Connected:
    """What of a platform can be asked now."""
    cluster = platform.raw.get("cluster")
    cluster = cluster if isinstance(cluster, Mapping) else {}
    context: Any = cluster.get("context")
    if context == SANDBOX_CONTEXT:
        try:
            running = running_sandbox()
        except UserError as why:
            return Connected(note=str(why))
        return Connected(cluster_reader.Cluster(context, running.kubeconfig), running.env())
    host = cluster_reader.Cluster(str(context)) if context else None
    note = "" if host else f"the kubeconfig of {platform.file.name} is {reading.SECRET}"
    try:
        return Connected(host, {"PATH": engine_path(say)}, note)
    except UserError as why:
        return Connected(host, note=str(why))
