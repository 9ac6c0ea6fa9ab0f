"""What the clusters tell: who holds and waits for what, which nodes are there, what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from kai_fleet_cli.doctor.checks.nodes import in_pool
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.finding import Finding, Health
from kai_fleet_cli.doctor.objects import KubeObject
from kai_fleet_cli.gpu_usage.devices import NodeGpus
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.report.model import Gpus, Missing, Pool, Report, Said, Team, Tree, Version, Wait
from kai_fleet_cli.report.planned import pools_of, version

_OTHERS = ""


def live(report: Report, look: Snapshot, findings: Sequence[Finding]) -> Report:
    """A planned report with what was seen now."""
    gpus = by_node(look)
    if not report.whole:
        own = [team.wanted.node_pool for team in look.teams.values()]
        names = {n.name for n in look.host.all("nodes") if any(in_pool(n, pool) for pool in own)}
        gpus = {name: node for name, node in gpus.items() if name in names}
    ready = {node.name for node in look.host.all("nodes") if node.is_true("Ready")}
    teams = [_team(team, look, report.made) for team in report.teams]
    unreached = [
        Missing(f"what team {team.name} holds and waits for", team.unreached)
        for team in teams
        if team.unreached
    ]
    return replace(
        report,
        live=True,
        teams=tuple(teams),
        pools=tuple(_pools(report, look, gpus, ready)),
        trees=tuple(_trees(report, look)),
        waits=tuple(sorted(_waits(look, findings), key=lambda wait: (-wait.gpus, -wait.pods))),
        said=tuple(
            _said(finding)
            for finding in findings
            if finding.health is not Health.OK and not _waits_only(finding, look)
        ),
        kubernetes=", ".join(sorted({*map(_kubelet, look.host.all("nodes"))} - {""})),
        well=sum(finding.health is Health.OK for finding in findings),
        gpus=_sum(gpus.values(), ready),
        missing=(*report.missing, *unreached),
        foreign=look.foreign,
    )


def by_node(look: Snapshot) -> dict[str, NodeGpus]:
    """Each node's GPUs with who holds them, every pod once.

    A pod of a vCluster is counted inside it: on the host a share of a GPU shows twice, as the pod
    and as the pod that reserves the GPU. In mode host it is counted on the host, whose KAI says
    which GPU it shares.
    """
    teams = [team for team in look.teams.values() if team.wanted.mode != "host"]
    inside = [team for team in teams if team.inside is not None]
    copies = {team.wanted.namespace for team in inside}
    # Of a vCluster that is not looked into only the pods are counted that reserve whole GPUs.
    shares = {team.wanted.namespace for team in teams}
    found = {name: _without(node, copies, shares) for name, node in look.host.usage.gpus.items()}
    for team in inside:
        assert team.inside is not None
        for name, node in team.inside.usage.gpus.items():
            if name in found:
                found[name] = replace(
                    found[name],
                    whole=(*found[name].whole, *node.whole),
                    shared=(*found[name].shared, *node.shared),
                )
    return found


def _without(node: NodeGpus, copies: set[str], shares: set[str]) -> NodeGpus:
    return replace(
        node,
        whole=tuple(each for each in node.whole if each[0].namespace not in copies),
        shared=tuple(
            gpu
            for gpu in node.shared
            if not gpu.holders or any(pod.namespace not in shares for pod, _ in gpu.holders)
        ),
    )


def _sum(nodes: Iterable[NodeGpus], ready: set[str]) -> Gpus:
    every = list(nodes)
    there = [node for node in every if node.node in ready]
    return Gpus(
        ready=sum(node.count for node in there),
        not_ready=sum(node.count for node in every if node.node not in ready),
        in_use=sum(map(_held, there)),
        free=sum(max(0.0, node.free) for node in there),
    )


def _held(node: NodeGpus) -> float:
    whole = sum(count for _, count in node.whole)
    return whole + sum(shared.taken for shared in node.shared)


def _team(team: Team, look: Snapshot, made: datetime) -> Team:
    seen = look.teams.get(team.name)
    if seen is None or seen.wanted.granted:
        return _by_host(team, look)
    if seen.inside is None:
        return replace(_by_host(team, look), unreached=seen.unreached)
    pods = seen.inside.usage.pods
    waiting = [pod for pod in pods if pod.waits]
    scheduling = look.scheduling(seen.inside)
    declared = team.kai.wanted if team.kai else None
    return replace(
        team,
        in_use=sum(pod.amounts.gpu for pod in pods if not pod.waits),
        waiting=sum(pod.amounts.gpu for pod in waiting),
        waiting_pods=len(waiting),
        kai=version(declared, scheduling.running_version, made) if declared else None,
        vcluster=Version(team.vcluster.wanted if team.vcluster else None, _runs(look.host, seen)),
    )


def _by_host(team: Team, look: Snapshot) -> Team:
    """By the copies of its pods on the host: what waits inside a vCluster is not among them."""
    if "pods" in look.host.unreadable:
        return team
    pods = [pod for pod in look.host.usage.pods if pod.namespace == f"team-{team.name}"]
    held = [pod for pod in pods if not pod.waits]
    seen = look.teams.get(team.name)
    if seen is not None and seen.wanted.mode == "host":
        return replace(team, in_use=sum(pod.amounts.gpu for pod in held))
    # The pods that reserve shared GPUs are in the team's namespace, too.
    return replace(team, in_use=sum(pod.gpu.whole + pod.gpu.mig for pod in held))


def _runs(host: ClusterState, seen: TeamState) -> str | None:
    item = host.named("statefulsets", seen.wanted.name, seen.wanted.namespace)
    chart = item.labels.get("chart", "") if item else ""
    return f"v{chart.removeprefix('vcluster-')}" if chart else None


def _pools(
    report: Report, look: Snapshot, gpus: Mapping[str, NodeGpus], ready: set[str]
) -> Iterator[Pool]:
    nodes = {node.name: node for node in look.host.all("nodes")}
    left = set(gpus)
    named = pools_of(team.wanted for team in look.teams.values())
    for labels, teams in sorted(named.items(), key=lambda each: each[0] == _OTHERS):
        wanted = dict(part.split("=", 1) for part in labels.split(", ")) if labels else {}
        mine = [name for name, node in nodes.items() if labels and in_pool(node, wanted)]
        if labels:
            left -= set(mine)
            yield _pool(labels, teams, mine, gpus, ready)
    shared = named.get(_OTHERS, [])
    if report.whole and (left or shared):
        yield _pool(_OTHERS, shared, sorted(left), gpus, ready)


def _pool(
    labels: str,
    teams: Sequence[str],
    nodes: Sequence[str],
    gpus: Mapping[str, NodeGpus],
    ready: set[str],
) -> Pool:
    there = [gpus[name] for name in nodes if name in gpus]
    products = Counter(node.product for node in there if node.product)
    return Pool(
        labels,
        tuple(teams),
        len(nodes),
        sum(name in ready for name in nodes),
        tuple(products),
        _sum(there, ready),
    )


def _trees(report: Report, look: Snapshot) -> Iterator[Tree]:
    """The trees that are there; the planned one of a cluster that was not reached."""
    seen = {"the host": look.host} | {
        name: team.inside for name, team in look.teams.items() if team.inside is not None
    }
    planned = {tree.name: tree for tree in report.trees}
    for name in dict.fromkeys([*planned, *seen]):
        cluster = seen.get(name)
        if cluster is not None and cluster.usage.queues:
            yield Tree(name, tuple(cluster.usage.queues.values()))
        elif name in planned and cluster is None:
            yield planned[name]


def _waits(look: Snapshot, findings: Sequence[Finding]) -> Iterator[Wait]:
    """Who waits, by team and reason."""
    why = {
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
                subject = f"pod {pod.name} in namespace {pod.namespace}"
                said = why.get((cluster.name, subject))
                groups.setdefault(said, []).append(pod)
        for said, pods in groups.items():
            first = min((pod.created for pod in pods if pod.created), default="")
            yield Wait(
                team=cluster.name,
                queues=tuple(sorted({pod.queue for pod in pods if pod.queue})),
                pods=len(pods),
                gpus=sum(pod.amounts.gpu for pod in pods),
                since=datetime.fromisoformat(first.replace("Z", "+00:00")) if first else None,
                why=said.cause if said else "",
                what=said.fix if said else "",
            )


def _waits_only(finding: Finding, look: Snapshot) -> bool:
    """Whether it is about pods without a node alone, which are told of as who waits."""
    cluster = next((each for each in look.clusters if each.name == finding.cluster), look.host)
    waiting = {f"pod {pod.name} in namespace {pod.namespace}" for pod in cluster.usage.waiting}
    return waiting.issuperset(finding.things)


def _kubelet(node: KubeObject) -> str:
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or "")


def _said(finding: Finding) -> Said:
    return Said(
        finding.health.value,
        finding.cluster,
        finding.subject,
        finding.cause,
        finding.fix,
        len(finding.things),
    )
