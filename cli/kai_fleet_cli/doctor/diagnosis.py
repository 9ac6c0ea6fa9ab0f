"""One run of the doctor: from a stack's name to findings on the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from rich.console import Console

from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet.finding import Finding, Level
from kai_fleet.values import get
from kai_fleet.wording import counted, listed
from kai_fleet_cli.diff.changes import UPGRADES_DRIVERS, Item
from kai_fleet_cli.display.terminal import print_line, pulumi_first
from kai_fleet_cli.doctor.checks import AHEAD, examine
from kai_fleet_cli.doctor.read import of_stack, read_clusters
from kai_fleet_cli.doctor.snapshot import Snapshot, UnreadError
from kai_fleet_cli.errors import UserError
from kai_fleet_policies.model.cluster import HOST

# In the order in which they are shown.
WORDS: Final = {
    Level.MANDATORY: "broken",
    Level.ADVISORY: "warning",
    Level.INFO: "tenant",
}
_STYLES: Final = {Level.MANDATORY: "red", Level.ADVISORY: "yellow", Level.INFO: "cyan"}


class ExitCode(IntEnum):
    """Exit codes of the doctor, for the shell and for CI."""

    HEALTHY = 0
    BROKEN = 1
    BLIND = 2  # the host, or the stack's file, could not be read: nothing is known
    UNREAD = 3  # nothing is broken of what was read, and a cluster could not be read at all


@dataclass(frozen=True)
class Diagnosis:
    """The findings of one run; `unread` are the clusters of which this user may read nothing."""

    stack: str
    findings: tuple[Finding, ...]
    blind: bool = False
    unread: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code: broken comes before unread."""
        if self.blind:
            return ExitCode.BLIND
        if self.count(Level.MANDATORY):
            return ExitCode.BROKEN
        return ExitCode.UNREAD if self.unread else ExitCode.HEALTHY

    def count(self, level: Level) -> int:
        """The number of findings of that level."""
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


def diagnose(stack: str, team: str | None = None, context: str | None = None) -> Diagnosis:
    """Examine a stack's clusters; `team` narrows it to one team, and the host.

    Raises UserError for a stack or a team that is not there.
    """
    source = of_stack(stack, team, context)
    try:
        snapshot = read_clusters(source)
    except UnreachableError as error:
        cause = f"its API is not reached: {error}"
        fix = f"look with: `{source.kubectl} version`"
        unreached = Finding(Level.MANDATORY, HOST, "host cluster", "", cause, fix, "host")
        return Diagnosis(stack, (unreached,), blind=True)
    clusters = (each for each in snapshot.clusters if each.unreadable)
    unread = [each.name for each in clusters if not any(each.objects.values())]
    unread += [name for name, state in snapshot.teams.items() if state.hidden]
    return Diagnosis(stack, tuple(examine(snapshot)), unread=tuple(unread))


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print each cause with its fix, what is broken first, and what is well as a count."""
    _show_causes(diagnosis.findings, console)
    print_line(console, _summary(diagnosis))
    if not diagnosis.blind:
        refresh = f"pulumi refresh --preview-only --stack {diagnosis.stack}"
        print_line(console, f"other differences from what is declared: `{refresh}`")
        if first := pulumi_first(refresh):
            print_line(console, first)


def print_missing_prerequisites(stack: str, console: Console) -> None:
    """Print what a stack's host lacks that no update makes; in one line why that is not known."""
    try:
        _show_causes(examine(read_clusters(of_stack(stack), AHEAD)), console)
    except (UnreachableError, UserError) as error:  # other mistakes of the file ended it before
        platform = "the file of its platform's stack is not in this folder"
        why = platform if isinstance(error, UserError) else error
        print_line(console, f"the host cluster is not looked at: {why}")


def with_live_counts(stack: str, lost: Sequence[Item], console: Console) -> list[Item]:
    """Losses with the pods and volumes in them; print in one line why these are not known."""
    if not lost:
        return []
    team, *others = {item.team for item in lost}
    try:  # of a team that is not in the file any more, the host
        read = read_clusters(replace(of_stack(stack), only=None if others else team))
    except (UnreachableError, UserError) as why:
        print_line(console, f"pods and volumes in what is lost are not counted: {why}")
        return list(lost)
    return [replace(item, words=item.words + _alive(read, item)) for item in lost]


def _alive(read: Snapshot, item: Item) -> str:
    kind, _, name = item.subject.partition(" ")
    if item.words.startswith(UPGRADES_DRIVERS.words):
        return _alive_on_gpus(read)
    if kind == "Queue":
        return _alive_in_queue(read, item.team, name)
    if name == f"{item.team}-namespace":
        return _alive_in_namespace(read, f"team-{item.team}")
    return ""


def _alive_on_gpus(read: Snapshot) -> str:
    try:
        running = [pod for pod in read.host.usage.pods if pod.gpus and not pod.waits]
    except UnreadError:
        return "; they could not be counted"
    return f"; {counted(len(running), 'such pod', 'runs')} now"


def _alive_in_queue(read: Snapshot, team: str, queue: str) -> str:
    state = read.teams.get(team)
    cluster = read.host if team == HOST else state and state.inside
    unknown = "; its pods could not be counted"
    if not cluster:
        return unknown
    try:
        waits = [pod.waits for pod in cluster.usage.pods if pod.queue == queue]
    except UnreadError:
        return unknown
    running, waiting = waits.count(False), waits.count(True)
    return f"; {counted(running, 'pod', 'runs')} and {counted(waiting, 'pod', 'waits')}"


def _alive_in_namespace(read: Snapshot, namespace: str) -> str:
    try:
        pods = [*read.host.within("pods", namespace)]
        claims = [*read.host.within("persistentvolumeclaims", namespace)]
    except UnreadError:
        return "; its pods and volumes could not be counted"
    sizes = [get(each.spec, "resources", "requests", "storage") for each in claims]
    volumes = [f"{each.name} {size}" for each, size in zip(claims, sizes, strict=True)]
    count = counted(len(volumes), "volume")
    return f"; {counted(len(pods), 'pod')} and {count} {listed(volumes, 'and')}".rstrip()


def _show_causes(findings: Iterable[Finding], console: Console) -> None:
    causes = [finding for finding in findings if finding.level is not Level.OK]
    for finding in sorted(causes, key=lambda finding: [*WORDS].index(finding.level)):
        word = (WORDS[finding.level], _STYLES[finding.level])
        print_line(console, word, f" {finding.path}: {finding.subject}")
        print_line(console, f"    {finding.cause}")
        if finding.fix:
            print_line(console, f"  → {finding.fix}")
    if causes:
        console.print()


def _summary(diagnosis: Diagnosis) -> str:
    what = f"stack {diagnosis.stack}"
    if diagnosis.blind:
        return f"{what} could not be read"
    ok, warned, broken = map(diagnosis.count, (Level.OK, Level.ADVISORY, Level.MANDATORY))
    names = sorted({finding.check for finding in diagnosis.findings if finding.level is Level.OK})
    passed = f"{counted(ok, 'check')} passed ({', '.join(names)})" if ok else "no check passed"
    warnings = counted(warned, "warning")
    if of_tenants := diagnosis.count(Level.INFO):
        warnings += f", {of_tenants} of tenants' own making"
    if broken:
        return f"{what}: {broken} broken, {warnings}; {passed}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{what} is not known to be healthy: nothing of {unread} may be read; {passed}"
    return f"{what} {f'works, with {warnings}' if warned or of_tenants else 'is healthy'}: {passed}"
