"""The GPUs of a stack at one moment, from what the doctor reads and finds, and their page.

Amounts are GPUs; None is "not known", -1 is unlimited. GPUs in use are counted on the host, where
no tenant can hide a pod: a GPU that a vCluster's KAI shares is one there, held by its reservation
pod. Queues and waiting pods are counted in the cluster of their scheduler.

The page is one file of HTML with its style and drawings, which loads nothing. Numbers stand beside
each bar, and no meaning rests on colour alone: a quota is an outline, GPUs in use fill it, what
pods wait for follows behind it.
"""

import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from kai_fleet.cluster.kube.objects import KubeObject, in_pool, moment
from kai_fleet.finding import Finding, Level
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.causes import Fault, filled, text
from kai_fleet_cli.doctor.checks import SECONDS, examine
from kai_fleet_cli.doctor.checks.pods import why
from kai_fleet_cli.doctor.diagnosis import WORDS, ExitCode
from kai_fleet_cli.doctor.read import of_stack, read_clusters
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_cli.doctor.usage import QueueUse
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.cluster import Team as Declared
from kai_fleet_policies.model.pod_use import PodUse, numbers, pods_of, requests_of, whole_gpus
from kai_fleet_policies.model.queues import UNLIMITED

SHOWN: Final = 12  # rows of who waits and of findings, and trees; others are folded
_COMMAND: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Team:
    """A team with what it was promised, holds and waits for, and its scheduler in words."""

    name: str
    promised: float
    in_use: float | None = None
    waiting: float | None = None
    scheduler: str = ""


@dataclass(frozen=True)
class Pool:
    """Nodes with the same labels and the teams that run there; no labels: all others with GPUs.

    `gpus` are those of Ready nodes, `in_use` the ones of them that pods hold.
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
    """Pods of a team that have no node for one reason; no cause: they are on their way."""

    team: str
    queues: Sequence[str]
    pods: int
    gpus: float
    since: datetime | None
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Report:
    """A stack at one moment.

    `queues` are by cluster, parents before their children. Each node is in one of `pools`, None
    where nodes or pods were not read. `findings` are the doctor's, without those about pods, which
    are in `waits`. `missing` are sentences about what was not read.
    """

    stack: str
    time: datetime
    teams: Sequence[Team] = ()
    queues: Mapping[str, Sequence[QueueUse]] = field(default_factory=dict)
    pools: Sequence[Pool] | None = None
    waits: Sequence[Wait] = ()
    findings: Sequence[Finding] = ()
    missing: Sequence[str] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code, for the shell and for CI."""
        return ExitCode.UNREAD if self.missing else ExitCode.HEALTHY

    @property
    def figures(self) -> dict[str, float | None]:
        """The totals, in the order in which they are shown. What waits is the sum of `waits`."""
        pools = self.pools or ()
        gpus, in_use = sum(pool.gpus for pool in pools), sum(pool.in_use for pool in pools)
        return {
            "promised": sum(team.promised for team in self.teams),
            "in use": None if self.pools is None else in_use,
            "free": None if self.pools is None else max(0.0, gpus - in_use),
            "waiting": sum(wait.gpus for wait in self.waits),
        }


def now(stack: str) -> Report:
    """Read a stack's clusters. Raises UserError for its file, UnreachableError for its host."""
    snapshot = read_clusters(of_stack(stack))
    # A team's own stack has its namespace of the host, and its pool of nodes.
    whole = not snapshot.settings.platform_stack
    return fill(stack, snapshot, examine(snapshot, without="pending"), whole=whole)


def fill(
    stack: str, snapshot: Snapshot, findings: Sequence[Finding], *, whole: bool = True
) -> Report:
    """Fill a report. `whole`: it is about all of a host, not about one team's own stack."""
    host, clusters, teams = snapshot.host, snapshot.clusters, snapshot.teams
    missing = [f"team {name}: {at.unreached}" for name, at in teams.items() if at.unreached]
    missing += [f"team {each.name}: {why}" for each in clusters[1:] if (why := _unread(each))]
    hidden = host.unread("nodes", "pods")
    unread = hidden or _unread(host)
    missing += [f"host: {unread}"] if unread and whole else []
    waits = sorted(_waits(snapshot), key=lambda wait: (-wait.gpus, -wait.pods))
    return Report(
        stack=stack,
        time=host.now,
        teams=[_team(team, host, waits) for team in teams.values()],
        queues={
            "the host" if cluster is host else cluster.name: list(cluster.usage.queues.values())
            for cluster in clusters
            if not _unread(cluster) and cluster.usage.queues
        },
        pools=None if hidden else list(_pools(snapshot, whole=whole)),
        waits=waits,
        findings=findings,
        missing=missing,
    )


def _unread(cluster: Cluster) -> str:
    """Why it is not known who holds and waits for what in a cluster; "" where it is."""
    try:
        _ = cluster.usage
    except UnreadError as error:
        return str(error)
    return ""


def _team(state: TeamState, host: Cluster, waits: Iterable[Wait]) -> Team:
    team = state.team
    own = [wait.gpus for wait in waits if wait.team == team.name]
    is_read = state.inside is not None and not _unread(state.inside)
    return Team(
        name=team.name,
        promised=float(team.gpus or 0),
        in_use=_held(team, host),
        waiting=sum(own) if own or is_read else None,
        scheduler=_scheduler(state, host),
    )


def _scheduler(state: TeamState, host: Cluster) -> str:
    """The scheduler of a team's pods, with the version of KAI that runs."""
    if state.granted:
        return "KAI of its own stack"
    if state.team.mode == "default":
        return "Kubernetes"
    own = state.team.mode == "virtual"
    cluster = state.inside if own else host
    version = None
    with suppress(UnreadError):
        version = cluster.version if cluster is not None else None
    name = "KAI" if own else "the host's KAI"
    return f"{name} {version}" if version else name


def _held(team: Declared, host: Cluster) -> float | None:
    """GPUs of a team's pods on the host; the parts of shared ones where the host's KAI shares."""
    try:
        if team.mode == "host":
            pods = [pod for pod in host.usage.pods if pod.namespace == team.namespace]
            return sum(pod.gpus for pod in pods if not pod.waits)
        copies = pods_of(host.within("pods", team.namespace), (), {})
        return sum(pod.gpu.whole + pod.gpu.mig for pod in copies if not pod.waits)
    except UnreadError:
        return None


def _pools(snapshot: Snapshot, *, whole: bool) -> Iterator[Pool]:
    """The pools of teams, and on a whole host all other nodes with GPUs as one."""
    host = snapshot.host
    teams: dict[str, list[str]] = defaultdict(list)
    selectors = dict[str, Mapping[str, str]]()
    for name, state in snapshot.teams.items():
        pool = state.team.node_pool
        labels = ", ".join(f"{key}={pool[key]}" for key in sorted(pool))
        teams[labels].append(name)
        selectors |= {labels: pool} if labels else {}
    nodes: dict[str, list[KubeObject]] = defaultdict(list)
    for node in host.all("nodes"):
        labels = next((key for key, pool in selectors.items() if in_pool(node.labels, pool)), "")
        if labels or (whole and _gpus(node)):
            nodes[labels].append(node)
    held: dict[str, float] = defaultdict(float)
    for pod in host.all("pods"):  # all that a kubelet counts, those of Kubernetes too
        if (on := pod.spec.get("nodeName")) and not pod.ended:
            held[on] += whole_gpus(requests_of(pod.spec))
    for labels in {**teams, **nodes}:
        of_pool = nodes[labels]
        ready = [node for node in of_pool if node.is_true("Ready")]
        yield Pool(
            labels=labels,
            teams=teams[labels],
            nodes=len(of_pool),
            ready_nodes=len(ready),
            gpus=sum(map(_gpus, ready)),
            in_use=sum(held[node.name] for node in ready),
            not_ready=sum(map(_gpus, of_pool)) - sum(map(_gpus, ready)),
        )


def _gpus(node: KubeObject) -> float:
    return whole_gpus(numbers(node.status.get("allocatable")))


def _waits(snapshot: Snapshot) -> Iterator[Wait]:
    """The pods without a node, by team and reason; each pod in the cluster of its scheduler."""
    owners = {team.team.namespace: name for name, team in snapshot.teams.items()}
    groups: dict[tuple[str, str], list[tuple[PodUse, Fault | None]]] = defaultdict(list)
    for cluster in (each for each in snapshot.clusters if not _unread(each)):
        on_host, items = cluster is snapshot.host, snapshot.pods(cluster)
        ends = math.inf if on_host else time.monotonic() + SECONDS
        for item, pod in ((item, cluster.uses.get(item.namespaced_name)) for item in items):
            if pod is not None and pod.waits and not pod.ending:
                owner = owners.get(pod.namespace, HOST) if on_host else cluster.name
                fault = _why(item, cluster, snapshot) if time.monotonic() < ends else None
                groups[owner, fault.key or fault.cause if fault else ""].append((pod, fault))
    for (owner, _), waiting in groups.items():
        uses, reason = [pod for pod, _ in waiting], waiting[0][1]
        names = [pod.namespaced_name for pod in uses]
        yield Wait(
            team=owner,
            queues=sorted({pod.queue for pod in uses if pod.queue}),
            pods=len(uses),
            gpus=sum(pod.gpus for pod in uses),
            since=moment(min((pod.created for pod in uses if pod.created), default="")),
            cause=text(reason.cause) if reason else "",
            fix=filled(reason.fix, names) if reason else "",
        )


def _why(item: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Why a pod waits, or that this is not known."""
    try:
        return why(item, cluster, snapshot)
    except UnreadError as error:
        cause = f"why is not known: {error}"
        return Fault(Level.ADVISORY, cluster.name, "pod", item.namespaced_name, cause)


def page(report: Report) -> str:
    """The report as HTML."""
    loader, strict = jinja2.PackageLoader("kai_fleet_cli.report", "."), jinja2.StrictUndefined
    environment = jinja2.Environment(
        loader=loader, undefined=strict, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"gpus": gpus, "counted": counted, "prose": _prose, "longest": _longest}
    levels = Counter(finding.level for finding in report.findings)
    problems = [finding for finding in report.findings if finding.level is not Level.OK]
    # Globals, since macros are not given the template's variables.
    environment.globals |= {
        "report": report,
        "age": lambda since: age(report.time - since) if since else "",
        "count": {level.value: levels[level] for level in Level},
        "problems": sorted(problems, key=lambda finding: [*WORDS].index(finding.level)),
        "shown": SHOWN,
        "words": WORDS,
    }
    return environment.get_template("page.html.jinja").render()


def _longest(rows: Iterable[Any], quota: str) -> float:
    """The end of the longest bar of some teams or queues: they share a scale."""
    ends = (max(getattr(row, quota), row.in_use or 0.0) + (row.waiting or 0.0) for row in rows)
    return max(ends, default=0.0)


def _prose(text: str) -> Markup:
    """A sentence with a capital and a full stop, and with its commands as code."""
    sentence = str(escape(f"{text[:1].upper()}{text[1:]}."))
    return Markup(_COMMAND.sub(r"<code>\1</code>", sentence))


def gpus(amount: float | None) -> str:
    """An amount with two decimals at most, `unlimited`, or a dash for not known."""
    if amount is None:
        return "\u2013"
    if amount == UNLIMITED:
        return "unlimited"
    return f"{round(amount, 2):,g}" if amount < 10**6 else f"{amount:,.0f}"


def age(since: timedelta) -> str:
    """An age in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    if minutes >= 1440:
        return f"{minutes // 1440} d {minutes // 60 % 24} h"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
