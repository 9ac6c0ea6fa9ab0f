"""One run of the doctor: from a stack's name, or a kubectl context, to findings on the terminal."""

from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.cluster import HOST
from kai_fleet.kube.errors import UnreachableError
from kai_fleet.wording import counted
from kai_fleet_cli.display.terminal import print_line, print_wrapped
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.read import Progress, no_progress, read_clusters
from kai_fleet_cli.doctor.sources import of_context, of_stack
from kai_fleet_cli.errors import UserError

WORDS: Final = {Level.MANDATORY: "broken", Level.ADVISORY: "warning"}
_STYLES: Final = {Level.MANDATORY: "red", Level.ADVISORY: "yellow"}


class ExitCode(IntEnum):
    """For the shell, and for CI."""

    HEALTHY = 0
    BROKEN = 1
    BLIND = 2  # the host, or the stack's file, could not be read: nothing is known
    UNREAD = 3  # nothing is broken of what was read, and a cluster could not be read at all


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
        """What a shell gets."""
        if self.blind:
            return ExitCode.BLIND
        if self.count(Level.MANDATORY):
            return ExitCode.BROKEN
        return ExitCode.UNREAD if self.unread else ExitCode.HEALTHY

    def count(self, level: Level) -> int:
        """How many findings there are of that level."""
        return sum(finding.level is level for finding in self.findings)

    def record(self) -> dict[str, Any]:
        """The JSON: its keys do not change between releases."""
        return {
            "stack": self.stack,
            "healthy": self.exit_code is ExitCode.HEALTHY,
            "exitCode": int(self.exit_code),
            "counts": {level.value: self.count(level) for level in Level},
            "findings": [finding.record() for finding in self.findings],
        }


def diagnose(
    stack: str | None,
    team: str | None = None,
    context: str | None = None,
    kubeconfig: Path | None = None,
    progress: Progress = no_progress,
) -> Diagnosis:
    """Examine a stack's clusters, or without a stack file the cluster of a kubeconfig's context.

    `team` narrows it to one team, and the host. Raises UserError for a stack or a team that is not
    there, and for both a stack and a kubeconfig.
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
        snapshot = read_clusters(replace(sources, progress=progress))
    except UnreachableError as error:
        cause = f"its API is not reached: {error}"
        fix = f"look with: `{sources.host_kubectl} version`"
        unreached = Finding(Level.MANDATORY, HOST, "host cluster", "", cause, fix, "host")
        return Diagnosis(stack, (unreached,), blind=True)
    if team is not None and team not in snapshot.teams:
        raise UserError(f"there is no team {team} on this cluster")
    # What is wrong with the host concerns the team, but not what is wrong with another's.
    found = examine(snapshot)
    of_team = (finding for finding in found if team is None or finding.path in (HOST, team))
    unread = tuple(cluster.name for cluster in snapshot.clusters if cluster.is_unread)
    return Diagnosis(stack, tuple(of_team), unread=unread)


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print each cause with its fix, what is broken first, and what is well as a count."""
    causes = [finding for finding in diagnosis.findings if finding.level is not Level.OK]
    for finding in sorted(causes, key=lambda finding: finding.level is Level.ADVISORY):
        lead = Text.assemble((WORDS[finding.level], _STYLES[finding.level]), f" {finding.path}:")
        print_wrapped(console, finding.subject, lead, indent=4)
        print_wrapped(console, finding.cause, "    ", indent=4)
        if finding.fix:
            print_wrapped(console, finding.fix, "  →", indent=4)
    if causes:
        console.print()
    print_line(console, _summary(diagnosis))
    if diagnosis.stack and not diagnosis.blind:
        refresh = f"pulumi refresh --preview-only --stack {diagnosis.stack}"
        print_line(console, f"other differences from what is declared: `{refresh}`")


def _summary(diagnosis: Diagnosis) -> str:
    what = f"stack {diagnosis.stack}" if diagnosis.stack else "the cluster"
    if diagnosis.blind:
        return f"{what} could not be read"
    ok, warned, broken = map(diagnosis.count, (Level.OK, Level.ADVISORY, Level.MANDATORY))
    names = sorted({finding.check for finding in diagnosis.findings if finding.level is Level.OK})
    passed = f"{counted(ok, 'check')} passed ({', '.join(names)})" if ok else "no check passed"
    warnings = counted(warned, "warning")
    if broken:
        return f"{what}: {broken} broken, {warnings}; {passed}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{what} is not known to be healthy: nothing of {unread} may be read; {passed}"
    return f"{what} {f'works, with {warnings}' if warned else 'is healthy'}: {passed}"
