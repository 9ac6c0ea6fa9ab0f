"""The GPUs of a stack at one moment, from the doctor's snapshot and findings, and their page.

Amounts are GPUs: None is unknown, -1 is unlimited. GPUs in use are counted on the host, where no
tenant can hide a pod. There a GPU that a vCluster's KAI shares counts as one, which its reservation
pod holds. Queues and waiting pods are counted in the cluster of their scheduler.

The page is one HTML file that loads nothing: style and drawings are in it. Each bar has its numbers
beside it, and no meaning rests on colour alone: a quota is an outline, GPUs in use fill it, and
GPUs that pods wait for follow behind it.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import jinja2
from markupsafe import Markup, escape

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.queues.amounts import is_unlimited_in_spec
from kai_fleet.wording import number_with_noun
from kai_fleet_cli.doctor.checks import JUDGE_SECONDS, examine
from kai_fleet_cli.doctor.checks.pods import why
from kai_fleet_cli.doctor.diagnosis import WORDS, ExitCode
from kai_fleet_cli.doctor.faults import Fault, on_one_line_without_backticks, with_names
from kai_fleet_cli.doctor.read import read_clusters, source_of_stack
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_policies.finding import Command, Finding, Level, commands_of, sentence, split_at
from kai_fleet_policies.model.cluster import HOST, DeclaredTeam
from kai_usage.nodes import gpus_of
from kai_usage.objects import has_labels
from kai_usage.pods import Pod, read_pods
from kai_usage.queues import Queue, borrowed
from kai_usage.requests import requests_of, whole_gpus
from kai_usage.times import moment

SHOWN: Final = 12  # rows of waits and of findings, and queue trees; the page folds the others
_DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True)
class Team:
    """A team's GPUs.

    Args:
        name: The team's name.
        promised: GPUs that it is granted.
        in_use: GPUs that its pods hold.
        waiting: GPUs that its waiting pods ask for.
        scheduler: Its scheduler in words.
    """

    name: str
    promised: float
    in_use: float | None = None
    waiting: float | None = None
    scheduler: str = ""


@dataclass(frozen=True)
class QueueRow:
    """The GPUs of a queue and of its children together.

    Args:
        name: The queue's name.
        parent: Its parent's name; None at the top.
        level: 1 at the top.
        leaf: No queue names this one as its parent.
        quota: GPUs; -1 is unlimited.
        limit: GPUs; -1 is unlimited.
        in_use: GPUs that pods with a node hold.
        waiting: GPUs that pods without a node ask for.
        display_name: The queue's displayName, or "".
    """

    name: str
    parent: str | None
    level: int
    leaf: bool
    quota: float
    limit: float
    in_use: float = 0.0
    waiting: float = 0.0
    display_name: str = ""

    @property
    def borrowed(self) -> float:
        """GPUs in use above the quota; 0 if the quota is unlimited."""
        return borrowed(self.in_use, self.quota)


@dataclass(frozen=True)
class Pool:
    """The nodes of one pool.

    Args:
        labels: Labels of the pool; "" for all other nodes with GPUs.
        teams: The teams that run there.
        nodes: Number of nodes.
        ready_nodes: Number of Ready nodes.
        gpus: GPUs of Ready nodes.
        in_use: GPUs of Ready nodes that pods hold.
        not_ready: GPUs of other nodes.
    """

    labels: str
    teams: Sequence[str] = ()
    nodes: int = 0
    ready_nodes: int = 0
    gpus: float = 0.0
    in_use: float = 0.0
    not_ready: float = 0.0


@dataclass(frozen=True)
class Wait:
    """The pods of a team that have no node for the same reason.

    Args:
        team: The team's name; `host` for pods outside the teams' namespaces.
        queues: Their queues.
        pods: Number of pods.
        gpus: GPUs that they ask for.
        since: When the oldest was created; None if unknown.
        cause: The reason; "" if none was found, as for pods that have just been created.
        fix: What to do; "" if unknown.
        commands: The commands in `fix`.
    """

    team: str
    queues: Sequence[str]
    pods: int
    gpus: float
    since: datetime | None
    cause: str = ""
    fix: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A stack at one moment.

    Args:
        stack: Name of the stack.
        time: When its host was read.
        teams: Its teams.
        queues: Queues by cluster, parents before their children.
        pools: Node pools, each node in one of them; None if nodes or pods were not read.
        waits: Why pods wait.
        findings: The doctor's findings without those about waiting pods.
        missing: Sentences about what was not read.
    """

    stack: str
    time: datetime
    teams: Sequence[Team] = ()
    queues: Mapping[str, Sequence[QueueRow]] = field(default_factory=dict)
    pools: Sequence[Pool] | None = None
    waits: Sequence[Wait] = ()
    findings: Sequence[Finding] = ()
    missing: Sequence[str] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code, for the shell and for CI: UNREAD if anything was not read."""
        return ExitCode.UNREAD if self.missing else ExitCode.HEALTHY

    @property
    def figures(self) -> dict[str, float | None]:
        """Total GPUs, in the order in which the page shows them; None if they were not read.

        Those in use and free are of Ready nodes.
        """
        in_use: float | None = None
        free: float | None = None
        if self.pools is not None:
            in_use = sum(pool.in_use for pool in self.pools)
            free = max(0.0, sum(pool.gpus for pool in self.pools) - in_use)
        return {
            "promised": sum(team.promised for team in self.teams),
            "in use": in_use,
            "free": free,
            "waiting": sum(wait.gpus for wait in self.waits),
        }


def read_report(stack: str) -> Report:
    """Read a stack's clusters and report on them.

    Raises:
        UserError: As `source_of_stack`.
        UnreachableError: The host does not answer.
        One of MALFORMED: Objects of the host are malformed.
    """
    snapshot = read_clusters(source_of_stack(stack))
    # A team's own stack sees its namespace on the host, and the nodes of its pool.
    whole_host = not snapshot.settings.platform_stack
    findings = examine(snapshot, without="pending")
    return build_report(stack, snapshot, findings, whole_host=whole_host)


def build_report(
    stack: str,
    snapshot: Snapshot,
    findings: Sequence[Finding],
    *,
    whole_host: bool = True,
) -> Report:
    """Return the report on a snapshot.

    `whole_host`: it is about the whole host, not about one team's own stack.
    """
    host = snapshot.host
    waits = sorted(_waits(snapshot), key=lambda wait: (-wait.gpus, -wait.pods))
    pools: list[Pool] | None = None
    if not host.unread("nodes", "pods"):
        pools = list(_pools(snapshot, whole_host=whole_host))
    return Report(
        stack=stack,
        time=host.now,
        teams=[_team(state, host, waits) for state in snapshot.teams.values()],
        queues=_queues(snapshot),
        pools=pools,
        waits=waits,
        findings=findings,
        missing=_missing(snapshot, whole_host=whole_host),
    )


def _missing(snapshot: Snapshot, *, whole_host: bool) -> list[str]:
    """Return sentences about what was not read: vClusters, lists in them, lists of the host."""
    missing = list[str]()
    for name, state in snapshot.teams.items():
        if state.unreached:
            missing.append(f"team {name}: {state.unreached}")
    for cluster in snapshot.insides:
        if unread := _unread(cluster):
            missing.append(f"team {cluster.name}: {unread}")
    unread = snapshot.host.unread("nodes", "pods") or _unread(snapshot.host)
    if unread and whole_host:
        missing.append(f"host: {unread}")
    return missing


def _queues(snapshot: Snapshot) -> dict[str, list[QueueRow]]:
    """Return the queues by cluster, without clusters that have none or were not read."""
    queues = dict[str, list[QueueRow]]()
    for cluster in snapshot.clusters:
        if not _unread(cluster) and cluster.usage.queues:
            name = "the host" if cluster is snapshot.host else cluster.name
            queues[name] = [_queue_row(queue) for queue in cluster.usage.queues.values()]
    return queues


def _queue_row(queue: Queue) -> QueueRow:
    """Return a queue's GPUs with those of its children; `level` is 1 at the top."""
    share = queue.shares["gpu"]
    return QueueRow(
        name=queue.name,
        parent=queue.parent,
        level=queue.level,
        leaf=not queue.children,
        quota=share.quota,
        limit=share.limit,
        in_use=share.in_use,
        waiting=share.waiting,
        display_name=queue.display_name,
    )


def _unread(cluster: Cluster) -> str:
    """Return why what pods hold and wait for in a cluster is unknown; "" if it is known."""
    try:
        _ = cluster.usage
    except UnreadError as error:
        return str(error)
    return ""


def _team(state: TeamState, host: Cluster, waits: Iterable[Wait]) -> Team:
    """Return a team's GPUs. Without a wait, 0 wait if its vCluster was read; else it is unknown."""
    team = state.team
    gpus_waiting = [wait.gpus for wait in waits if wait.team == team.name]
    is_read = state.inside is not None and not _unread(state.inside)
    return Team(
        name=team.name,
        promised=float(team.gpus or 0),
        in_use=_gpus_held(team, host),
        waiting=sum(gpus_waiting) if gpus_waiting or is_read else None,
        scheduler=_scheduler(state, host),
    )


def _scheduler(state: TeamState, host: Cluster) -> str:
    """Return the scheduler of a team's pods, with the version of KAI that runs if it is known."""
    if state.declared_elsewhere:
        return "KAI of its own stack"
    if state.team.mode == "default":
        return "Kubernetes"
    cluster: Cluster | None = host
    name = "the host's KAI"
    if state.team.mode == "virtual":
        cluster = state.inside
        name = "KAI"
    if cluster is None:
        return name
    version = None
    with suppress(UnreadError):
        version = cluster.version
    return f"{name} {version}" if version else name


def _gpus_held(team: DeclaredTeam, host: Cluster) -> float | None:
    """Return the GPUs that a team's pods hold on the host; None if that was not read.

    In mode host fractions of shared GPUs count as fractions. Else a shared GPU is held as one.
    """
    try:
        if team.mode == "host":
            pods = [pod for pod in host.usage.pods if pod.namespace == team.namespace]
            return sum(pod.gpu_amount for pod in pods if not pod.waits)
        copies = read_pods(host.within("pods", team.namespace))
        return sum(pod.gpu.whole + pod.gpu.mig for pod in copies if not pod.waits)
    except UnreadError:
        return None


def _pools(snapshot: Snapshot, *, whole_host: bool) -> Iterator[Pool]:
    """Yield the teams' pools, and for a whole host all other nodes with GPUs as one pool.

    A node that two pools select is in the first. Teams with the same labels share a pool; that of
    teams without labels has the label "". Raises UnreadError.
    """
    host = snapshot.host
    teams: dict[str, list[str]] = defaultdict(list)
    selectors = dict[str, Mapping[str, str]]()
    for name, state in snapshot.teams.items():
        selector = state.team.node_pool
        labels = ", ".join(f"{key}={selector[key]}" for key in sorted(selector))
        teams[labels].append(name)
        if labels:
            selectors[labels] = selector
    nodes: dict[str, list[KubeObject]] = defaultdict(list)
    for node in host.all("nodes"):
        labels = _pool_of(node, selectors)
        if labels or (whole_host and gpus_of(node)):
            nodes[labels].append(node)
    gpus_by_node = _gpus_by_node(host)
    for labels in {**teams, **nodes}:
        yield _pool(labels, teams[labels], nodes[labels], gpus_by_node)


def _pool_of(node: KubeObject, selectors: Mapping[str, Mapping[str, str]]) -> str:
    """Return the labels of the first pool that has a node; "" for none."""
    for labels, selector in selectors.items():
        if has_labels(node, selector):
            return labels
    return ""


def _gpus_by_node(host: Cluster) -> Mapping[str, float]:
    """Return the GPUs that pods hold, by node, as its kubelet counts them: system pods, too."""
    gpus_by_node: dict[str, float] = defaultdict(float)
    for pod in host.all("pods"):
        node = pod.spec.get("nodeName")
        if node and not pod.has_ended:
            gpus_by_node[node] += whole_gpus(requests_of(pod.spec))
    return gpus_by_node


def _pool(
    labels: str,
    teams: Sequence[str],
    nodes: Sequence[KubeObject],
    gpus_by_node: Mapping[str, float],
) -> Pool:
    """Return the pool of these nodes. `gpus_by_node` are the GPUs that pods hold, by node."""
    ready = [node for node in nodes if node.is_true("Ready")]
    ready_gpus = sum(map(gpus_of, ready))
    return Pool(
        labels=labels,
        teams=teams,
        nodes=len(nodes),
        ready_nodes=len(ready),
        gpus=ready_gpus,
        in_use=sum(gpus_by_node.get(node.name, 0.0) for node in ready),
        not_ready=sum(map(gpus_of, nodes)) - ready_gpus,
    )


class _WaitingPod(NamedTuple):
    """A pod without a node, its team, and why it waits; None if it is on its way."""

    team: str
    use: Pod
    reason: Fault | None

    @property
    def cause_key(self) -> str:
        """What it has in common with pods that wait for the same reason."""
        if self.reason is None:
            return ""
        return self.reason.key or self.reason.cause


def _waits(snapshot: Snapshot) -> Iterator[Wait]:
    """Yield the pods without a node by team and reason, each pod in the cluster that it is in."""
    groups: dict[tuple[str, str], list[_WaitingPod]] = defaultdict(list)
    for cluster in snapshot.clusters:
        if _unread(cluster):
            continue
        for pod in _waiting_pods(cluster, snapshot):
            groups[pod.team, pod.cause_key].append(pod)
    for (team, _), group in groups.items():
        yield _wait(team, group[0].reason, [pod.use for pod in group])


def _waiting_pods(cluster: Cluster, snapshot: Snapshot) -> Iterator[_WaitingPod]:
    """Yield the waiting pods of a cluster, without those that are being deleted.

    In a vCluster reasons are looked for during 20 s: pods after that have none.
    """
    on_host = cluster is snapshot.host
    teams = {state.team.namespace: name for name, state in snapshot.teams.items()}
    deadline = math.inf if on_host else time.monotonic() + JUDGE_SECONDS
    for pod in snapshot.pods(cluster):
        use = cluster.pod_uses.get(pod.namespaced_name)
        if use is None or not use.waits or use.is_being_deleted:
            continue
        team = teams.get(use.namespace, HOST) if on_host else cluster.name
        reason = None
        if time.monotonic() < deadline:
            reason = _why(pod, cluster, snapshot)
        yield _WaitingPod(team, use, reason)


def _wait(team: str, reason: Fault | None, uses: Sequence[Pod]) -> Wait:
    """Return the wait of pods with the same reason."""
    names = [use.namespaced_name for use in uses]
    fix = with_names(reason.fix, names) if reason else ()
    oldest = min((use.created for use in uses if use.created), default="")
    return Wait(
        team=team,
        queues=sorted({use.queue for use in uses if use.queue}),
        pods=len(uses),
        gpus=sum(use.gpu_amount for use in uses),
        since=moment(oldest),
        cause=on_one_line_without_backticks(reason.cause) if reason else "",
        fix=sentence(fix),
        commands=commands_of(fix),
    )


def _why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return why a pod waits, None if it is on its way, or a warning that this was not read."""
    try:
        return why(pod, cluster, snapshot)
    except UnreadError as error:
        cause = f"why is not known: {error}"
        return Fault(Level.ADVISORY, cluster.name, "pod", pod.namespaced_name, cause)


def page(report: Report) -> str:
    """Return the report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.report", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        gpus=gpus,
        counted=number_with_noun,
        prose=_prose,
        longest=_longest_bar,
    )
    levels = Counter(finding.level for finding in report.findings)
    problems = [finding for finding in report.findings if finding.level is not Level.OK]
    # Globals, because macros do not get the variables of the template.
    environment.globals.update(
        report=report,
        age=lambda since: age(report.time - since) if since else "",
        count={level.value: levels[level] for level in Level},
        problems=sorted(problems, key=lambda finding: [*WORDS].index(finding.level)),
        shown=SHOWN,
        words=WORDS,
    )
    return environment.get_template("page.html.jinja").render()


def _longest_bar(rows: Iterable[Team | QueueRow], quota: str) -> float:
    """Return the GPUs at the end of the longest bar of some teams or queues: they share a scale.

    `quota` is the name of the field with the quota.
    """
    longest = 0.0
    for row in rows:
        waiting_from = max(getattr(row, quota), row.in_use or 0.0)
        longest = max(longest, waiting_from + (row.waiting or 0.0))
    return longest


def _prose(text: str, commands: Sequence[str] = ()) -> Markup:
    """Return a sentence with a capital, a full stop, and these commands as code."""
    page_text = Markup()
    for part in split_at(commands, f"{text[:1].upper()}{text[1:]}."):
        if isinstance(part, Command):
            page_text += Markup("<code>{}</code>").format(part.line)
        else:
            page_text += escape(part)
    return page_text


def gpus(amount: float | None) -> str:
    """Return an amount of GPUs with two decimals at most, `unlimited`, or a dash if unknown."""
    if amount is None:
        return "\u2013"
    if is_unlimited_in_spec(amount):
        return "unlimited"
    if amount >= 10**6:
        return f"{amount:,.0f}"
    return f"{round(amount, 2):,g}"


def age(since: timedelta) -> str:
    """Return an age in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    days, minutes_of_day = divmod(minutes, _DAY_MINUTES)
    hours, minutes_of_hour = divmod(minutes_of_day, 60)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes_of_hour} min" if hours else f"{minutes} min"
