"""One run of the doctor: from a stack's name, or a kubectl context, to its findings in words."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from kai_fleet.fleet.model import HOST
from kai_fleet.kube.errors import UnreachableError
from kai_fleet.wording import counted
from kai_fleet_cli.display.terminal import told
from kai_fleet_cli.doctor.examine import examine
from kai_fleet_cli.doctor.gather import Heard, gather, no_progress
from kai_fleet_cli.doctor.sources import of_context, of_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.waiting.finding import ExitCode, Finding, Health

_STYLE = {Health.BROKEN: "red", Health.WARNING: "yellow"}


@dataclass(frozen=True)
class Diagnosis:
    """The findings of one run. `stack` is None where only a context was given; `unread` are the
    clusters of which this user may read nothing.
    """

    stack: str | None
    findings: tuple[Finding, ...]
    blind: bool = False
    unread: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """0 healthy, 1 something is broken, 2 the host could not be looked at, 3 a cluster answers
        and lets this user read nothing: that is not healthy.
        """
        if self.blind:
            return ExitCode.BLIND
        if self.count(Health.BROKEN):
            return ExitCode.BROKEN
        return ExitCode.UNREAD if self.unread else ExitCode.HEALTHY

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


def diagnose(
    stack: str | None,
    team: str | None = None,
    context: str | None = None,
    kubeconfig: Path | None = None,
    heard: Heard = no_progress,
) -> Diagnosis:
    """Look at a stack's clusters, or without a stack file at the cluster of a kubeconfig's context.

    `team` narrows it to one team, and the host. `heard` is told how many of all clusters have
    answered. Raises UserError for a stack or a team that there is not, and for both a stack and a
    kubeconfig.
    """
    if stack is None:
        sources = of_context(context, kubeconfig, team)
    elif kubeconfig is not None:
        raise UserError(
            "--kubeconfig is for a cluster without a stack; leave out --stack, or write --context"
        )
    else:
        sources = of_stack(stack, team, context)
    try:
        snapshot = gather(replace(sources, heard=heard))
    except UnreachableError as error:
        cause = f"its API is not reached: {error}"
        fix = f"look with: `{sources.host_kubectl} version`"
        unreached = Finding("host", Health.BROKEN, HOST, "host cluster", cause, fix)
        return Diagnosis(stack, (unreached,), blind=True)
    if team is not None and team not in snapshot.teams:
        raise UserError(f"there is no team {team} on this cluster")
    # What is wrong with the host is the team's concern too, but not what is wrong with another's.
    of_team = [it for it in examine(snapshot) if team is None or it.cluster in (HOST, team)]
    unread = tuple(cluster.name for cluster in snapshot.clusters if cluster.is_unread)
    return Diagnosis(stack, tuple(of_team), unread=unread)


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print each thing that is not well with its cure, what is broken first; the others counted."""
    ill = [finding for finding in diagnosis.findings if finding.health is not Health.OK]
    for finding in sorted(ill, key=lambda each: each.health is Health.WARNING):
        lead = Text.assemble((finding.health.value, _STYLE[finding.health]), f" {finding.cluster}:")
        told(console, finding.subject, lead, indent=4)
        told(console, finding.cause, "    ", indent=4)
        if finding.fix:
            told(console, finding.fix, "  →", indent=4)
    if ill:
        console.print()
    console.print(_sentence(diagnosis), markup=False, highlight=False, soft_wrap=True)


def _sentence(diagnosis: Diagnosis) -> str:
    what = f"stack {diagnosis.stack}" if diagnosis.stack else "the cluster"
    if diagnosis.blind:
        return f"{what} could not be looked at"
    well, warned, broken = map(diagnosis.count, (Health.OK, Health.WARNING, Health.BROKEN))
    names = sorted({it.check for it in diagnosis.findings if it.health is Health.OK})
    healthy = f"{counted(well, 'check')} passed ({', '.join(names)})"
    healthy = healthy if well else "no check passed"
    warnings = counted(warned, "warning")
    if broken:
        return f"{what}: {broken} broken, {warnings}; {healthy}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{what} is not known to be healthy: nothing of {unread} may be read; {healthy}"
    if warned:
        return f"{what} works, with {warnings}; {healthy}"
    return f"{what} is healthy: {healthy}"
