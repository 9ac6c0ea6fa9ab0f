"""A platform's host cluster and its engine, for commands that only look: nothing is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet import live, stack_file
from fleet.environment import SANDBOX_CONTEXT, Say
from fleet.teams.places import Platform


@dataclass(frozen=True)
class Reach:
    """A platform's cluster and the engine's variables; None, with a note, for what is not there."""

    host: live.Cluster | None = None
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    note: str = ""


def reach(platform: Platform, say: Say) -> Reach:
    """What of a platform can be asked now."""
    cluster = platform.raw.get("cluster")
    cluster = cluster if isinstance(cluster, Mapping) else {}
    context: Any = cluster.get("context")
    if context == SANDBOX_CONTEXT:
        from sandbox import lifecycle

        running = lifecycle.find()
        if running is None:
            return Reach(note="the sandbox is not running; start it with: make up")
        return Reach(live.Cluster(context, running.kubeconfig), running.env())
    host = live.Cluster(str(context)) if context else None
    note = "" if host else f"the kubeconfig of {platform.file.name} is {stack_file.SECRET}"
    from sandbox import tools

    try:
        found = tools.ensure(("pulumi",), say)
    except tools.ToolError as why:
        return Reach(host, note=str(why))
    path = os.pathsep.join([str(found["pulumi"].path.parent), os.environ.get("PATH", "")])
    return Reach(host, {"PATH": path}, note)
