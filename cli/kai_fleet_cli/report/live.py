"""What the clusters tell: who holds and waits for what, which nodes are there, what is wrong."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.kube.objects import in_pool, moment
from kai_fleet.kube.pods import PodUse
from kai_fleet.releases import support
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.report.model import (
    GpuSum,
    PoolReport,
    StackReport,
    TeamReport,
    Version,
    WaitGroup,
)
from kai_fleet_cli.report.team_usage import TeamUsageRow, held_by_copies, teams_now
from kai_fleet_cli.usage.counting import NodeGpus
from kai_fleet_cli.waiting.finding import ExitCode, Finding, Health


def live(report: StackReport, look: Snapshot, findings: Sequence[Finding]) -> StackReport:
    """A planned report with what was seen now."""
    nodes, gpus = look.host.all("nodes"), by_node(look)
    if not report.whole:
        pools = [team.wanted.node_pool for team in look.teams.values()]
        own = {node.name for node in nodes if any(in_pool(node.labels, pool) for pool in pools)}
        gpus = {name: node for name, node in gpus.items() if name in own}
    ready = {node.name for node in nodes if node.is_true("Ready")}
    kubelets = {str(value_at(it.status, "nodeInfo.kubeletVersion") or "") for it in nodes}
    rows = {row.team: row for row in teams_now(look)}
    teams = [_team(team, rows[team.name], look, report.made) for team in report.teams]
    unreached = {
        f"what team {team.name} holds and waits for": team.unreached
        for team in teams
        if team.unreached
    }
    # The nodes of a host are its platform's: accounts of a team's own stack may not list them.
    hidden = look.host.refused("nodes", "pods")
    refused = any(team.inside and team.inside.refused() for team in look.teams.values())
    blind = ExitCode.BLIND if unreached else report.exit_code
    read = {} if look.host.refused() else {"the host": look.host}
    read |= {name: inside for name, team in look.teams.items() if (inside := _inside(team))}
    seen = {name: list(cluster.usage.queues.values()) for name, cluster in read.items()}
    trees = {name: queues for name, queues in {**report.trees, **seen}.items() if queues}
    waiting = {c.name: {pod.subject for pod in c.usage.waiting} for c in look.clusters}
    of_host = waiting[look.host.name]
    return replace(
        report,
        live=True,
        teams=teams,
        pools=report.pools if hidden else list(_pools(report, look, gpus, ready)),
        trees=trees,
        as_declared=[name for name in trees if name not in seen],
        waits=sorted(_waits(look, findings), key=lambda wait: (-wait.gpus, -wait.pods)),
        # What is about pods without a node alone is told as who waits.
        findings=[
            finding
            for finding in findings
            if finding.health is not Health.OK
            and not waiting.get(finding.cluster, of_host).issuperset(finding.things)
        ],
        kubernetes=", ".join(sorted(kubelets - {""})),
        well=sum(finding.health is Health.OK for finding in findings),
        gpus=None if hidden else _sum(gpus.values(), ready),
        missing={
            **report.missing,
            **unreached,
            **({"nodes, and who holds their GPUs": hidden} if hidden else {}),
        },
        exit_code=ExitCode.UNREAD if refused or (hidden and report.whole) else blind,
        foreign=look.foreign,
    )


def _inside(team: TeamState) -> ClusterState | None:
    """A team's vCluster, where it is known who holds what in it."""
    return None if team.inside is None or team.inside.refused() else team.inside


def by_node(look: Snapshot) -> dict[str, NodeGpus]:
    """Each node's GPUs with who holds them, every pod once.

    A pod of a vCluster is counted inside it: on the host a share of a GPU shows twice, as the pod
    and as the pod that reserves the GPU. In mode host it is counted on the host, whose KAI says
    which GPU it shares. Of a vCluster that is not looked into only the pods are counted that
    reserve whole GPUs.
    """
    teams = [team for team in look.teams.values() if team.wanted.mode != "host"]
    insides = {team.wanted.namespace: it for team in teams if (it := _inside(team))}
    sharing = {team.wanted.namespace for team in teams}
    gpus: dict[str, NodeGpus] = {}
    for name, node in look.host.usage.gpus.items():
        whole = [pod for pod in node.whole if pod.namespace not in insides]
        whole += _hidden(node, insides)
        shared = [
            gpu
            for gpu in node.shared
            if not gpu.holders or any(pod.namespace not in sharing for pod, _ in gpu.holders)
        ]
        for inside in insides.values():
            if within := inside.usage.gpus.get(name):
                whole += within.whole
                shared += within.shared
        gpus[name] = replace(node, whole=tuple(whole), shared=tuple(shared))
    return gpus


def _hidden(node: NodeGpus, insides: Mapping[str, ClusterState]) -> Iterator[PodUse]:
    """What pods hold of a node of the host beyond what their vClusters tell (see `_not_inside`)."""
    copies: dict[str, list[PodUse]] = defaultdict(list)
    for pod in node.whole:
        copies[pod.namespace].append(pod)
    for namespace in copies.keys() & insides.keys():
        told = insides[namespace].usage.gpus.get(node.node, NodeGpus(node.node, 0))
        known = sum(pod.gpu.whole for pod in told.whole) + len(told.shared)
        if (more := sum(pod.gpu.whole for pod in copies[namespace]) - known) > 0:
            pod = copies[namespace][-1]
            yield replace(pod, gpu=replace(pod.gpu, whole=more))


def _sum(nodes: Iterable[NodeGpus], ready: Collection[str]) -> GpuSum:
    every = list(nodes)
    there = [node for node in every if node.node in ready]
    return GpuSum(
        ready=sum(node.count for node in there),
        not_ready=sum(node.count for node in every if node.node not in ready),
        in_use=sum(node.held for node in there),
        free=sum(node.free for node in there),
    )


def _team(team: TeamReport, row: TeamUsageRow, look: Snapshot, made: datetime) -> TeamReport:
    """Of a vCluster that is not looked into by the copies of its pods on the host: what waits in it
    is not among them.
    """
    seen = look.teams[team.name]
    wanted, inside = seen.wanted, None if seen.wanted.granted else _inside(seen)
    in_use = None if row.unreached else row.gpus.used
    if row.unreached and "pods" not in look.host.unreadable:
        copies = (pod for pod in look.host.usage.pods if pod.namespace == wanted.namespace)
        in_use = held_by_copies(wanted, copies)
    elif in_use is None and inside is not None:
        in_use = sum(pod.amounts.gpu for pod in inside.usage.pods if not pod.waits)
    if inside is None:
        why = seen.inside.refused() if seen.inside else seen.unreached
        return replace(team, in_use=in_use, unreached="" if wanted.granted else why)
    waiting = [pod for pod in inside.usage.waiting if not pod.never]
    declared, running = team.kai.wanted if team.kai else None, look.scheduling(inside)
    return replace(
        team,
        in_use=in_use,
        waiting=sum(pod.amounts.gpu for pod in waiting),
        waiting_pods=len(waiting),
        kai=version(declared, running.running_version, made) if declared else None,
        vcluster=Version(wanted.version, look.host.vcluster_version(wanted)),
    )


def _pools(
    report: StackReport, look: Snapshot, gpus: Mapping[str, NodeGpus], ready: Collection[str]
) -> Iterator[PoolReport]:
    pools = pools_of(team.wanted for team in look.teams.values())
    others = pools.pop("", [])
    names = {
        labels: [it.name for it in look.host.all("nodes") if in_pool(it.labels, of[0].node_pool)]
        for labels, of in pools.items()
    }
    left = sorted(set(gpus).difference(*names.values()))
    if report.whole and (left or others):
        pools[""], names[""] = others, left
    for labels, teams in pools.items():
        there = [gpus[name] for name in names[labels] if name in gpus]
        yield PoolReport(
            labels,
            tuple(team.name for team in teams),
            len(names[labels]),
            sum(name in ready for name in names[labels]),
            tuple(Counter(node.product for node in there if node.product)),
            _sum(there, ready),
        )


def _waits(look: Snapshot, findings: Sequence[Finding]) -> Iterator[WaitGroup]:
    """Who waits, by team and reason."""
    reasons = {
        (finding.cluster, subject): finding
        for finding in reversed(findings)
        for subject in finding.things
    }
    for cluster in look.clusters:
        copied = look.copied(cluster)
        groups: dict[Finding | None, list[PodUse]] = {}
        for pod in cluster.usage.waiting:
            if pod.namespace not in copied:
                groups.setdefault(reasons.get((cluster.name, pod.subject)), []).append(pod)
        for finding, pods in groups.items():
            yield WaitGroup(
                team=cluster.name,
                queues=tuple(sorted({pod.queue for pod in pods if pod.queue})),
                pods=len(pods),
                gpus=sum(pod.amounts.gpu for pod in pods),
                since=moment(min((pod.created for pod in pods if pod.created), default="")),
                cause=finding.cause if finding else "",
                fix=finding.fix if finding else "",
            )


def pools_of(teams: Iterable[DeclaredTeam]) -> dict[str, list[DeclaredTeam]]:
    """The node pools as `key=value` texts, and the teams that have each."""
    pools: dict[str, list[DeclaredTeam]] = {}
    for team in teams:
        pools.setdefault(pool_name(team.node_pool), []).append(team)
    return pools


def pool_name(labels: Mapping[str, str]) -> str:
    """The labels of a node pool as text."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def version(wanted: str | None, running: str | None, made: datetime) -> Version | None:
    """A KAI's version with its support; None where there is none."""
    name = running or wanted
    if name is None:
        return None
    known = support(name, made.date())
    return Version(wanted, running, known.words, known.maintained)
