"""What a stack needs around the engine: the sandbox, or your cluster; and the tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from fleet import local_state, stack_file

SANDBOX_CONTEXT: Final = "kai-fleet-sandbox"
OCCUPANT: Final = "stack"  # a file in the sandbox's directory: the stack that runs there
KIND_CHECK: Final = stack_file.ROOT / "components" / "kind" / "check.sh"
# What the engine's commands need not ask the CLI then.
CLI_VERSION: Final = "KAI_FLEET_PULUMI_VERSION"
ENGINE_TOOLS: Final = (
    "pulumi",
    "pulumi-analyzer-policy-python",
    "pulumi-resource-kubernetes",
    "pulumi-resource-command",
)
Say = Callable[[str], None]


class NotPossible(Exception):  # noqa: N818 - its message is all a user sees
    """A command that cannot be done as asked; the message says what to do instead."""


@dataclass(frozen=True)
class Environment:
    """Variables for the engine and its plugins, and what in them is a stand-in, in words."""

    variables: dict[str, str] = field(default_factory=dict)
    standins: tuple[str, ...] = ()
    occupant: Path | None = None

    def vacate(self) -> None:
        """Let another stack have the sandbox."""
        if self.occupant is not None:
            self.occupant.unlink(missing_ok=True)


def for_stack(stack: str, say: Say, *, judged: bool = True) -> Environment:
    """The environment in which a stack runs, made ready.

    A stack whose context is the sandbox's gets a running sandbox. Every other one gets the tools,
    and uses your own Pulumi login and kubeconfig; a kind stack does without a login. Nothing is
    started for a stack file that the rules refuse, unless it is not `judged`: what runs must be
    removable whatever they say. Raises NotPossible.
    """
    # Half a second of imports, which commands that only need NotPossible are spared.
    from components.settings.tenant import Tenant, platform_of
    from fleet.platform_file import facts_beside
    from policies import gate

    try:
        raw = stack_file.read(stack_file.path_of(stack))
    except stack_file.Unreadable as why:
        raise NotPossible(str(why)) from None
    platform = platform_of(raw)
    if platform is not None and not _file_of(platform).exists():
        return _own_cluster(say)  # kept elsewhere: the program asks the engine for its facts
    judge = gate.judge if judged else gate.typed
    verdict = judge(raw, facts_of=facts_beside(stack_file.path_of(stack)))
    settings = verdict.settings
    if settings is None or (judged and verdict.refused):
        raise NotPossible(gate.report(verdict.refused))
    cluster = settings.platform.cluster if isinstance(settings, Tenant) else settings.cluster
    if cluster.context == SANDBOX_CONTEXT:
        return _sandbox(stack, say, platform)
    if isinstance(settings, Tenant) or settings.cluster.kind is None:
        return _own_cluster(say)
    _require_kind()
    own = _own_cluster(say)
    return replace(own, variables={**own.variables, **local_state.variables(say)})


def _file_of(platform: str) -> Path:
    return stack_file.path_of(platform.rpartition("/")[2])


def _sandbox(stack: str, say: Say, platform: str | None) -> Environment:
    from sandbox import lifecycle
    from sandbox.tools import ToolError

    host = platform.rpartition("/")[2] if platform is not None else None
    if host is not None and lifecycle.find() is None:
        raise NotPossible(_not_there(host, ""))  # a team stack alone starts nothing
    try:
        running = lifecycle.up(say)
    except (ToolError, lifecycle.SandboxError) as why:
        raise NotPossible(str(why)) from None
    occupant = running.directory / OCCUPANT
    there = occupant.read_text().strip() if occupant.exists() else ""
    if host is not None and there != host:
        raise NotPossible(_not_there(host, there))
    variables = {**running.env(), CLI_VERSION: running.version("pulumi")}
    if host is not None:  # it leaves the place to its platform when it goes
        return Environment(variables, running.standins)
    if there not in ("", stack):
        raise NotPossible(
            f"the sandbox runs stack {there}; a host cluster is in one mode, so make room for"
            f" {stack} first: make down"
        )
    occupant.write_text(stack)
    return Environment(variables, running.standins, occupant)


def _not_there(platform: str, there: str) -> str:
    runs = f"runs stack {there}" if there else "is empty"
    return (
        f"the sandbox {runs}, and this team stack belongs to platform {platform}; first:"
        f" {'make down, then ' if there else ''}make up STACK={platform}"
    )


def _require_kind() -> None:
    """Docker and kind, before the engine starts; the script says what is missing."""
    checked = subprocess.run([str(KIND_CHECK)], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        raise NotPossible(checked.stderr.strip())


def _own_cluster(say: Say) -> Environment:
    from sandbox import tools

    try:
        found = tools.ensure(ENGINE_TOOLS, say)
    except tools.ToolError as why:
        raise NotPossible(str(why)) from None
    folders = dict.fromkeys(str(tool.path.parent) for tool in found.values())
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    variables = {"PATH": path, CLI_VERSION: found["pulumi"].version}
    return Environment(variables, tuple(tools.standins(found)))
