"""What the clusters tell: who holds and waits for what, which nodes are there, what is wrong."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.report import model
from kai_fleet_cli.report.model import GpuSum, StackReport, TeamReport, Version
from kai_fleet_cli.report.team_usage import held, not_inside
from kubectl_fleet.live.finding import ExitCode, Finding, Health
from kubectl_fleet.live.objects import in_pool, moment
from kubectl_fleet.paths import value_at
from kubectl_fleet.releases import support
from kubectl_fleet.usage.counting import NodeGpus
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueueUse

_OTHERS = ""


def live(report: StackReport, look: Snapshot, findings: Sequence[Finding]) -> StackReport:
    """A planned report with what was seen now."""
    nodes = look.host.all("nodes")
    gpus = by_node(look)
    if not report.whole:
        pools = [team.wanted.node_pool for team in look.teams.values()]
        own = {node.name for node in nodes if any(in_pool(node.labels, pool) for pool in pools)}
        gpus = {name: node for name, node in gpus.items() if name in own}
    ready = {node.name for node in nodes if node.is_true("Ready")}
    kubelets = {str(value_at(it.status, "nodeInfo.kubeletVersion") or "") for it in nodes}
    teams = [_team(team, look, report.made) for team in report.teams]
    waiting = {c.name: {pod.subject for pod in c.usage.waiting} for c in look.clusters}
    of_host = waiting[look.host.name]
    missing = {
        f"what team {team.name} holds and waits for": team.unreached
        for team in teams
        if team.unreached
    }
    # The nodes of a host are its platform's: accounts of a team's own stack may not list them.
    hidden = look.host.refused("nodes", "pods")
    insides = [team.inside for team in look.teams.values() if team.inside is not None]
    unread = (hidden and report.whole) or any(inside.refused() for inside in insides)
    if hidden:
        missing["nodes, and who holds their GPUs"] = hidden
    trees = _trees(report, look)
    return replace(
        report,
        live=True,
        teams=teams,
        pools=report.pools if hidden else list(_pools(report, look, gpus, ready)),
        trees=trees,
        as_declared=[name for name in trees if trees[name] is report.trees.get(name)],
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
        missing={**report.missing, **missing},
        exit_code=ExitCode.UNREAD
        if unread
        else ExitCode.BLIND
        if any(team.unreached for team in teams)
        else report.exit_code,
        foreign=look.foreign,
    )


def _inside(team: TeamState) -> ClusterState | None:
    """A team's vCluster, where it is known who holds what in it."""
    return None if team.inside is None or team.inside.refused() else team.inside


def by_node(look: Snapshot) -> dict[str, NodeGpus]:
    """Each node's GPUs with who holds them, every pod once.

    A pod of a vCluster is counted inside it: on the host a share of a GPU shows twice, as the pod
    and as the pod that reserves the GPU. In mode host it is counted on the host, whose KAI says
    which GPU it shares.
    """
    teams = [team for team in look.teams.values() if team.wanted.mode != "host"]
    insides = {team.wanted.namespace: it for team in teams if (it := _inside(team))}
    # Of a vCluster that is not looked into only the pods are counted that reserve whole GPUs.
    shares = {team.wanted.namespace for team in teams}
    gpus = {}
    for name, node in look.host.usage.gpus.items():
        hidden = tuple(_hidden(node, insides))
        gpus[name] = _without(node, insides.keys(), shares)
        gpus[name] = replace(gpus[name], whole=(*gpus[name].whole, *hidden))
    for inside in insides.values():
        for name, node in inside.usage.gpus.items():
            if name in gpus:
                both = gpus[name]
                gpus[name] = replace(
                    both, whole=(*both.whole, *node.whole), shared=(*both.shared, *node.shared)
                )
    return gpus


def _hidden(node: NodeGpus, insides: Mapping[str, ClusterState]) -> Iterator[tuple[PodUse, float]]:
    """What pods hold of a node of the host beyond what their vClusters tell (see `not_inside`)."""
    copies: dict[str, list[tuple[PodUse, float]]] = defaultdict(list)
    for pod, count in node.whole:
        copies[pod.namespace].append((pod, count))
    for namespace in copies.keys() & insides.keys():
        told = insides[namespace].usage.gpus.get(node.node, NodeGpus(node.node, 0))
        known = sum(count for _, count in told.whole) + len(told.shared)
        if (more := sum(count for _, count in copies[namespace]) - known) > 0:
            yield copies[namespace][-1][0], more


def _without(node: NodeGpus, copies: Collection[str], shares: Collection[str]) -> NodeGpus:
    return replace(
        node,
        whole=tuple(each for each in node.whole if each[0].namespace not in copies),
        shared=tuple(
            gpu
            for gpu in node.shared
            if not gpu.holders or any(pod.namespace not in shares for pod, _ in gpu.holders)
        ),
    )


def _sum(nodes: Iterable[NodeGpus], ready: set[str]) -> GpuSum:
    every = list(nodes)
    there = [node for node in every if node.node in ready]
    return GpuSum(
        ready=sum(node.count for node in there),
        not_ready=sum(node.count for node in every if node.node not in ready),
        in_use=sum(node.held for node in there),
        free=sum(node.free for node in there),
    )


def _team(team: TeamReport, look: Snapshot, made: datetime) -> TeamReport:
    seen = look.teams.get(team.name)
    if seen is None or seen.wanted.granted:
        return _by_host(team, look)
    inside = _inside(seen)
    if inside is None:
        why = seen.inside.refused() if seen.inside else seen.unreached
        return replace(_by_host(team, look), unreached=why)
    usage, scheduling = inside.usage, look.scheduling(inside)
    copies = [pod for pod in look.host.usage.pods if pod.namespace == seen.wanted.namespace]
    waiting = [pod for pod in usage.waiting if not pod.never]
    declared = team.kai.wanted if team.kai else None
    return replace(
        team,
        in_use=held(usage.pods) + not_inside(inside, copies),
        waiting=sum(pod.amounts.gpu for pod in waiting),
        waiting_pods=len(waiting),
        kai=version(declared, scheduling.running_version, made) if declared else None,
        vcluster=Version(
            team.vcluster.wanted if team.vcluster else None,
            look.host.vcluster_version(seen.wanted),
        ),
    )


def _by_host(team: TeamReport, look: Snapshot) -> TeamReport:
    """By the copies of its pods on the host: what waits inside a vCluster is not among them."""
    if "pods" in look.host.unreadable:
        return team
    pods = [pod for pod in look.host.usage.pods if pod.namespace == f"team-{team.name}"]
    seen = look.teams.get(team.name)
    if seen is not None and seen.wanted.mode == "host":
        return replace(team, in_use=held(pods))
    # The pods that reserve shared GPUs are in the team's namespace, too.
    return replace(team, in_use=sum(it.gpu.whole + it.gpu.mig for it in pods if not it.waits))


def _pools(
    report: StackReport, look: Snapshot, gpus: Mapping[str, NodeGpus], ready: set[str]
) -> Iterator[model.PoolReport]:
    def pool(labels: str, teams: Sequence[DeclaredTeam], names: Sequence[str]) -> model.PoolReport:
        there = [gpus[name] for name in names if name in gpus]
        return model.PoolReport(
            labels,
            tuple(team.name for team in teams),
            len(names),
            sum(name in ready for name in names),
            tuple(Counter(node.product for node in there if node.product)),
            _sum(there, ready),
        )

    left = set(gpus)
    named = pools_of(team.wanted for team in look.teams.values())
    shared = named.pop(_OTHERS, [])
    for labels, teams in named.items():
        nodes, wanted = look.host.all("nodes"), teams[0].node_pool
        own = [node.name for node in nodes if in_pool(node.labels, wanted)]
        left -= set(own)
        yield pool(labels, teams, own)
    if report.whole and (left or shared):
        yield pool(_OTHERS, shared, sorted(left))


def _trees(report: StackReport, look: Snapshot) -> dict[str, Sequence[QueueUse]]:
    """The trees that are there; the planned one of a cluster that was not reached."""
    seen = {} if look.host.refused() else {"the host": look.host}
    seen |= {name: inside for name, team in look.teams.items() if (inside := _inside(team))}
    trees = {
        name: list(seen[name].usage.queues.values()) if name in seen else report.trees[name]
        for name in dict.fromkeys([*report.trees, *seen])
    }
    return {name: queues for name, queues in trees.items() if queues}


def _waits(look: Snapshot, findings: Sequence[Finding]) -> Iterator[model.WaitGroup]:
    """Who waits, by team and reason."""
    reasons = {
        (finding.cluster, subject): finding
        for finding in reversed(findings)
        for subject in finding.things
        if subject.startswith("pod ")
    }
    for cluster in look.clusters:
        copied = look.copied(cluster)
        groups: dict[Finding | None, list[PodUse]] = {}
        for pod in cluster.usage.waiting:
            if pod.namespace not in copied:
                groups.setdefault(reasons.get((cluster.name, pod.subject)), []).append(pod)
        for finding, pods in groups.items():
            first = min((pod.created for pod in pods if pod.created), default="")
            yield model.WaitGroup(
                team=cluster.name,
                queues=tuple(sorted({pod.queue for pod in pods if pod.queue})),
                pods=len(pods),
                gpus=sum(pod.amounts.gpu for pod in pods),
                since=moment(first),
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
