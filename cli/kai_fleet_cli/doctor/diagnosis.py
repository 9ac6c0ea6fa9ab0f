"""One run of the doctor: from a stack's name to findings on the terminal.

And what an update shows of live clusters: missing prerequisites, and what runs in what is lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet.values import get
from kai_fleet.wording import listed, number_with_noun
from kai_fleet_cli.diff.changes import UPGRADES_DRIVERS, SummaryLine
from kai_fleet_cli.display.terminal import pulumi_first, result
from kai_fleet_cli.doctor.checks import RESOURCES_BEFORE_UPDATE, examine
from kai_fleet_cli.doctor.read import read_clusters, source_of_stack
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_cli.engine.environment import is_elsewhere
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.finding import Command, Finding, Level
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack.settings.team_stack import platform_of

# Words for levels, in the order in which findings are shown.
WORDS = {
    Level.MANDATORY: "broken",
    Level.ADVISORY: "warning",
    Level.INFO: "tenant",
}
_STYLES = {Level.MANDATORY: "red", Level.ADVISORY: "yellow", Level.INFO: "cyan"}


class ExitCode(IntEnum):
    """Exit codes of the doctor. What they mean of a report its `exit_code` says."""

    HEALTHY = 0
    BROKEN = 1
    BLIND = 2  # the host or the stack file could not be read: nothing is known
    UNREAD = 3  # nothing that was read is broken, and nothing of a cluster could be read


@dataclass(frozen=True)
class Diagnosis:
    """The findings of one run.

    Args:
        stack: Name of the stack.
        findings: All findings, also those of level `ok`.
        blind: The host did not answer; then `findings` has that alone.
        unread: Names of the clusters of which nothing was read, because it was refused or put off;
            without vClusters that did not answer, which are findings.
    """

    stack: str
    findings: tuple[Finding, ...]
    blind: bool = False
    unread: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code. The first that applies: blind, broken, unread, healthy.

        Warnings and faults of tenants count as healthy.
        """
        if self.blind:
            return ExitCode.BLIND
        if self.count(Level.MANDATORY):
            return ExitCode.BROKEN
        return ExitCode.UNREAD if self.unread else ExitCode.HEALTHY

    def count(self, level: Level) -> int:
        """Return the number of findings of a level."""
        return sum(finding.level is level for finding in self.findings)

    def record(self) -> dict[str, object]:
        """Return the diagnosis as JSON. Its keys do not change between releases.

        `counts` has the number of findings by level, 0 included; `healthy` is exit code 0.
        `findings` has all, also those of level `ok`: the keys of `Finding.record`, and `commands`,
        a list of those that its fix tells to run.
        """
        return {
            "stack": self.stack,
            "healthy": self.exit_code is ExitCode.HEALTHY,
            "exitCode": int(self.exit_code),
            "counts": {level.value: self.count(level) for level in Level},
            "findings": [
                {**finding.record(), "commands": [*finding.commands]} for finding in self.findings
            ],
        }


def diagnose(stack: str, team: str | None = None, context: str | None = None) -> Diagnosis:
    """Examine the host and the vClusters of a stack.

    A host that does not answer, or whose kubeconfig is of no use, is a finding. Raises UserError as
    `source_of_stack`, and one of MALFORMED as `read_clusters`.

    Args:
        stack: Name of the stack.
        team: The one team to examine beside the host; None for all.
        context: Context of the host's kubeconfig; None for what the stack file says.
    """
    source = source_of_stack(stack, team, context)
    try:
        snapshot = read_clusters(source)
    except UnreachableError as error:
        look = Command(f"{source.kubectl} version")
        unreached = Finding(
            level=Level.MANDATORY,
            path=HOST,
            kind="host cluster",
            name="",
            cause=f"its API is not reached: {error}",
            fix=f"look with: {look}",
            check="host",
            commands=(look.line,),
        )
        return Diagnosis(stack, (unreached,), blind=True)
    return Diagnosis(stack, tuple(examine(snapshot)), unread=tuple(_unread_clusters(snapshot)))


def _unread_clusters(snapshot: Snapshot) -> list[str]:
    """Return the names of the clusters of which nothing was read.

    Either some of their lists were refused or put off and all others are empty, or what leads to
    them on the host could not be read.
    """
    names = [
        cluster.name
        for cluster in snapshot.clusters
        if cluster.unreadable and not any(cluster.objects.values())
    ]
    names += [name for name, state in snapshot.teams.items() if state.hidden]
    return names


def show(diagnosis: Diagnosis) -> None:
    """Print each cause with its fix, what is broken first, and a summary with what is well.

    Then the command that shows other differences, and how to get `pulumi` if it is not on the PATH;
    not if the host did not answer.
    """
    _print_causes(diagnosis.findings)
    result(_summary(diagnosis))
    if diagnosis.blind:
        return
    refresh = f"pulumi refresh --preview-only --stack {diagnosis.stack}"
    result(f"other differences from what is declared: `{refresh}`")
    if first := pulumi_first(refresh):
        result(first)


def print_missing_prerequisites(stack: str) -> None:
    """Print what the host lacks before an update, nothing if it lacks nothing.

    If it cannot be read, print why in one line; so too for a team's own stack whose platform has no
    file here. Raises one of MALFORMED for malformed objects of the host.
    """
    try:
        if is_elsewhere(platform_of(reading.read(reading.path_of(stack)))):
            raise UserError("the file of its platform's stack is not in this folder")
        snapshot = read_clusters(source_of_stack(stack), RESOURCES_BEFORE_UPDATE)
        _print_causes(examine(snapshot))
    except (UserError, UnreachableError) as error:
        result(f"the host cluster is not looked at: {error}")


def with_live_counts(stack: str, losses: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Return the losses, each with what runs there now appended to its words, by `_live_counts`.

    If the clusters cannot be read print why in one line, and return the losses as they are. Reads
    only one vCluster if all losses are one team's; none if that is the host, or a team that the
    stack file has no more. Raises one of MALFORMED as `read_clusters`.
    """
    if not losses:
        return []
    team, *other_teams = {item.team for item in losses}
    try:
        source = replace(source_of_stack(stack), team=None if other_teams else team)
        snapshot = read_clusters(source)
    except (UnreachableError, UserError) as why:
        result(f"pods and volumes in what is lost are not counted: {why}")
        return list(losses)
    return [replace(item, words=item.words + _live_counts(snapshot, item)) for item in losses]


def _live_counts(snapshot: Snapshot, item: SummaryLine) -> str:
    """Return what runs in a resource that will be lost, to append to a sentence; or "".

    Only for an upgrade of GPU drivers, a queue, and the namespace of a team. If that could not be
    counted, the words say so. Raises one of MALFORMED.
    """
    kind, _, name = item.subject.partition(" ")
    unknown = "; its pods could not be counted"
    try:
        if item.words.startswith(UPGRADES_DRIVERS.words):
            return _pods_on_gpus(snapshot.host)
        if kind == "Queue":
            for cluster in snapshot.clusters:
                if cluster.name == item.team:
                    return _pods_in_queue(cluster, name)
            return unknown  # a vCluster that was not read is none of them
        if name == f"{item.team}-namespace":
            return _pods_and_volumes(snapshot.host, f"team-{item.team}")
    except UnreadError:
        return unknown
    return ""


def _pods_on_gpus(host: Cluster) -> str:
    """Count the pods with GPUs that have a node, in words to append; MIG and shares count, too.

    Without pods that have ended, and those in RESERVED. Raises UnreadError.
    """
    running = [pod for pod in host.usage.pods if pod.gpu_amount and not pod.waits]
    return f"; {number_with_noun(len(running), 'such pod', 'runs')} now"


def _pods_in_queue(cluster: Cluster, queue: str) -> str:
    """Count a queue's pods, in words to append: those with a node, and those without.

    Pods of queues below it do not count, nor do pods that have ended. Raises UnreadError.
    """
    waits = [pod.waits for pod in cluster.usage.pods if pod.queue == queue]
    running = number_with_noun(waits.count(False), "pod", "runs")
    waiting = number_with_noun(waits.count(True), "pod", "waits")
    return f"; {running} and {waiting}"


def _pods_and_volumes(host: Cluster, namespace: str) -> str:
    """Count a namespace's pods and claims, in words to append; of each claim name and size.

    Pods that have ended count as well. Raises UnreadError.
    """
    pods = list(host.within("pods", namespace))
    claims = list(host.within("persistentvolumeclaims", namespace))
    volumes = [
        f"{claim.name} {get(claim.spec, 'resources', 'requests', 'storage')}" for claim in claims
    ]
    pod_count = number_with_noun(len(pods), "pod")
    volume_count = number_with_noun(len(volumes), "volume")
    return f"; {pod_count} and {volume_count} {listed(volumes, 'and')}".rstrip()


def causes_in(findings: Iterable[Finding]) -> list[Finding]:
    """Return all findings but those of level `ok`, in the order of WORDS."""
    causes = [finding for finding in findings if finding.level is not Level.OK]
    return sorted(causes, key=lambda finding: [*WORDS].index(finding.level))


def _print_causes(findings: Iterable[Finding]) -> None:
    """Print the causes in findings, and an empty line."""
    causes = causes_in(findings)
    for finding in causes:
        word = (WORDS[finding.level], _STYLES[finding.level])
        result(word, f" {finding.path}: {finding.subject}")
        result(f"    {finding.cause}")
        if finding.fix:
            result(f"  → {finding.fix}")
    if causes:
        result("")


def _summary(diagnosis: Diagnosis) -> str:
    """Return one sentence about a diagnosis: its stack, how it is, and, unless blind, what is well.

    How it is: the first that applies of blind, broken, unread, warnings or faults of tenants, and
    healthy.
    """
    stack = f"stack {diagnosis.stack}"
    if diagnosis.blind:
        return f"{stack} could not be read"
    broken = diagnosis.count(Level.MANDATORY)
    warned = diagnosis.count(Level.ADVISORY)
    by_tenants = diagnosis.count(Level.INFO)
    passed = _passed(diagnosis)
    warnings = number_with_noun(warned, "warning")
    if by_tenants:
        warnings += f", {by_tenants} of tenants' own making"
    if broken:
        return f"{stack}: {broken} broken, {warnings}; {passed}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{stack} is not known to be healthy: nothing of {unread} may be read; {passed}"
    if warned or by_tenants:
        return f"{stack} works, with {warnings}: {passed}"
    return f"{stack} is healthy: {passed}"


def _passed(diagnosis: Diagnosis) -> str:
    """Return the number of checks that are well, counted in each cluster, with sorted names."""
    checks = [finding.check for finding in diagnosis.findings if finding.level is Level.OK]
    if not checks:
        return "no check passed"
    return f"{number_with_noun(len(checks), 'check')} passed ({', '.join(sorted(set(checks)))})"
