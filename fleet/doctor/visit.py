"""One visit: from a stack's name, or a kubectl context, to everything that was found."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.settings import Settings
from fleet import stack_file
from fleet.api_reader import Reader, Unreachable
from fleet.doctor.checks import examine
from fleet.doctor.finding import ExitCode, Finding, Health
from fleet.doctor.gather import Sources, gather
from fleet.doctor.seen import Look
from fleet.doctor.wanted import HOST, WantedTeam, host_of, teams_of
from fleet.environment import SANDBOX_CONTEXT, NotPossible
from policies import gate

_HOST_CHECK: Final = "host"


@dataclass(frozen=True)
class Visit:
    """What one run of the doctor found. `stack` is None where only a context was given."""

    stack: str | None
    findings: tuple[Finding, ...]
    blind: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """0 healthy, 1 something is broken, 2 the host could not be looked at."""
        if self.blind:
            return ExitCode.BLIND
        broken = any(finding.health is Health.BROKEN for finding in self.findings)
        return ExitCode.BROKEN if broken else ExitCode.HEALTHY

    def count(self, health: Health) -> int:
        """How many findings there are of that kind."""
        return sum(finding.health is health for finding in self.findings)

    def record(self) -> dict[str, Any]:
        """The JSON: its keys do not change between releases."""
        return {
            "stack": self.stack,
            "healthy": self.exit_code is ExitCode.HEALTHY,
            "exitCode": int(self.exit_code),
            "counts": {health.value: self.count(health) for health in Health},
            "findings": [finding.record() for finding in self.findings],
        }


def visit(stack: str | None, team: str | None = None, context: str | None = None) -> Visit:
    """Look at a stack's clusters, or at the cluster of a context without a stack file.

    `team` narrows it to one team, and the host. Raises NotPossible for a stack or a team that
    there is not.
    """
    sources = _of_context(context, team) if stack is None else _of_stack(stack, team, context)
    try:
        look = gather(sources)
    except Unreachable as why:
        finding = Finding(
            _HOST_CHECK,
            Health.BROKEN,
            HOST,
            "host cluster",
            f"its API is not reached: {why}",
            f"look with: {sources.host_kubectl} version",
        )
        return Visit(stack, (finding,), blind=True)
    if team is not None and team not in look.teams:
        raise NotPossible(f"there is no team {team} on this cluster")
    return Visit(stack, tuple(_asked_for(look, team)))


def _asked_for(look: Look, team: str | None) -> list[Finding]:
    found = examine(look)
    if team is None:
        return found
    # What is said of the host is the team's concern too, but not what is said of another's.
    return [finding for finding in found if finding.cluster in (HOST, team)]


def _of_context(context: str | None, team: str | None) -> Sources:
    if context is None:
        raise NotPossible("write --stack with a stack's name, or --context with a kubectl context")
    return Sources(
        host=lambda: Reader.of_context(None, context),
        only=team,
        update="pulumi up",
        host_kubectl=f"kubectl --context {shlex.quote(context)}",
    )


def _of_stack(stack: str, team: str | None, context: str | None) -> Sources:
    settings = _settings(stack)
    teams = teams_of(settings)
    if team is not None and team not in teams:
        known = ", ".join(teams) or "none"
        raise NotPossible(f"stack {stack} has no team {team}; its teams: {known}")
    where = context or settings.cluster.context
    file, variables = _kubeconfig_file(where)
    named = f"--context {shlex.quote(where)}" if where else "--kubeconfig <the host's>"
    return Sources(
        host=lambda: (
            Reader.of_context(file, where)
            if where
            else Reader.of_kubeconfig(_secret_kubeconfig(stack, variables))
        ),
        wanted=host_of(settings),
        teams=_narrowed(teams, team),
        kubeconfigs=lambda: _outputs(stack, variables),
        update=f"make up STACK={stack}",
        host_kubectl=f"kubectl {named}",
    )


def _narrowed(teams: Mapping[str, WantedTeam], team: str | None) -> Mapping[str, WantedTeam]:
    return teams if team is None else {team: teams[team]}


def _settings(stack: str) -> Settings:
    try:
        raw = stack_file.read(stack_file.path_of(stack))
    except stack_file.Unreadable as why:
        raise NotPossible(str(why)) from None
    verdict = gate.judge(raw)
    if verdict.settings is None:
        raise NotPossible(gate.report(verdict.refused))
    return verdict.settings


def _kubeconfig_file(context: str | None) -> tuple[str | None, dict[str, str]]:
    """The sandbox's own kubeconfig for its stacks, and what the engine needs there."""
    if context != SANDBOX_CONTEXT:
        return None, {}
    from sandbox import lifecycle

    running = lifecycle.find()
    if running is None:
        raise NotPossible("the sandbox is not running; start it with: make up")
    return str(running.kubeconfig), running.env()


def _outputs(stack: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The teams' kubeconfigs from the stack's state; none where it cannot be asked."""
    found = _state(stack, variables, lambda opened: opened.outputs())
    return found["kubeconfigs"].value if found and "kubeconfigs" in found else {}


def _secret_kubeconfig(stack: str, variables: Mapping[str, str]) -> str:
    """The host's kubeconfig, which the stack file holds encrypted. Raises Unreachable."""
    found = _state(
        stack,
        variables,
        lambda opened: opened.get_config("kai-fleet:cluster.kubeconfig", path=True),
    )
    if found is None:
        raise Unreachable(
            "its kubeconfig is a secret of the stack, which cannot be read: run `pulumi login`, or"
            " give --context"
        )
    return str(found.value)


def _state(stack: str, variables: Mapping[str, str], ask: Any) -> Any:
    """Ask the stack through the Pulumi CLI; None where that cannot be done."""
    path = variables.get("PATH", os.environ.get("PATH"))
    if shutil.which("pulumi", path=path) is None:
        return None
    from pulumi import automation

    from fleet.recording import PROJECT

    options = automation.LocalWorkspaceOptions(
        work_dir=str(stack_file.ROOT), env_vars={**os.environ, **variables}
    )
    try:
        # Selecting does not make a stack that is not there.
        opened = automation.select_stack(stack, PROJECT, lambda: None, opts=options)
        return ask(opened)
    except automation.errors.CommandError:
        return None
