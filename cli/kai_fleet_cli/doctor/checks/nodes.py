"""GPUs: nodes that are Ready, in each team's pool, and that advertise them (V16)."""

from collections.abc import Sequence

from kai_fleet.fleet import taints
from kai_fleet.fleet.model import HOST, DeclaredTeam
from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet.kube.pods import MEMORY_LABEL
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet.releases.mig import PREFIX, STRATEGY_LABEL
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.wording import agreeing, counted
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot


def check(snapshot: Snapshot) -> Findings:
    """The host's nodes, pool by pool, and what each vCluster sees of them."""
    host = snapshot.host
    if "nodes" in host.unreadable:
        return
    for node in host.all("nodes"):
        if not node.is_true("Ready"):
            fix = f"look with: `{host.kubectl} describe node {node.name}`"
            yield host.warning(f"node {node.name}", "it is not Ready", fix)
    yield from _advertised(snapshot)
    for team in snapshot.teams.values():
        if team.wanted.declared and team.wanted.node_pool:
            yield from _pool(host, team.wanted)
        if team.wanted.mode == "virtual" and team.inside is not None:
            yield from _synced(host, team.wanted, team.inside)


def _advertised(snapshot: Snapshot) -> Findings:
    host, resource = snapshot.host, snapshot.host.wanted.gpu_resource
    nodes = host.all("nodes")
    with_gpus = [node for node in nodes if node.gpus(resource) or _slices(node)]
    wants = any(team.wanted.gpus != 0 for team in snapshot.teams.values())
    if with_gpus:
        yield host.well(f"{counted(len(with_gpus), 'node', 'advertises')} {resource}")
        if resource == NVIDIA:
            yield from _without_memory(host, [it for it in with_gpus if not _slices(it)])
    elif host.name != HOST and host.kai is not None:
        yield host.broken(
            f"GPUs of vCluster {host.name}",
            f"none of the {len(nodes)} nodes that it sees advertises {resource}",
            "ask the platform's engineers: what it sees are the Ready nodes of its pool",
        )
    elif host.name == HOST and (wants or host.kai is not None):
        yield host.broken(
            "GPUs of the host",
            f"none of {len(nodes)} nodes advertises {resource}",
            f"look at the pods of DaemonSet {there[0]}, which is the device plugin"
            if (there := host.device_plugins)
            else "set kai-fleet:gpu.provider to operator or device-plugin, and look at its pods;"
            " for another vendor's GPUs set kai-fleet:gpu.resource",
        )


def _without_memory(host: ClusterState, nodes: Sequence[KubeObject]) -> Findings:
    for node in nodes:
        if MEMORY_LABEL not in node.labels:
            yield host.warning(
                f"node {node.name}",
                f"it has GPUs and no label {MEMORY_LABEL}: no pod with gpu-memory is placed there",
                "run NVIDIA's GPU feature discovery (kai-fleet:gpu.provider: operator), or label"
                f" it: `{host.kubectl} label node {node.name} {MEMORY_LABEL}=<MiB>`",
            )


def _pool(host: ClusterState, wanted: DeclaredTeam) -> Findings:
    pool = ",".join(f"{key}={value}" for key, value in wanted.node_pool.items())
    subject = f"node pool {pool} of team {wanted.name}"
    nodes = [node for node in host.all("nodes") if in_pool(node.labels, wanted.node_pool)]
    usable = [node for node in nodes if node.takes_pods]
    if not usable:
        what = f"none of its {len(nodes)} nodes is Ready" if nodes else "no node has these labels"
        yield host.broken(
            subject,
            f"{what}: every pod of the team, its DNS among them, stays Pending",
            f"label nodes: `{host.kubectl} label node <node> {pool.replace(',', ' ')}`, or write"
            f" labels that nodes have at {wanted.path}.nodePool",
        )
        return
    yield from host.or_well(_kinds(host, wanted, subject, usable), subject)
    if closed := taints.closed_pool(wanted, [node.spec.get("taints") or [] for node in usable]):
        cause, fix = closed
        subject = f"taints of the nodes of team {wanted.name}"
        yield host.warning(subject, cause, f"{fix}, then {host.apply}")


def _kinds(
    host: ClusterState, wanted: DeclaredTeam, subject: str, nodes: Sequence[KubeObject]
) -> Findings:
    """Each kind of GPU of a team: on its nodes, or on those of each of its pools."""
    if not wanted.pools:
        for kind, most in wanted.kinds.items():
            yield from _kind(host, wanted, subject, nodes, kind, most, f"{wanted.path}.gpus")
        return
    shards = {node.name: node.labels.get(NODE_POOL, DEFAULT_SHARD) for node in nodes}
    if loose := [name for name, shard in shards.items() if shard not in wanted.pools]:
        yield host.warning(
            subject,
            f"{', '.join(loose[:3])} {agreeing(len(loose), 'is')} on none of its pools"
            f" ({', '.join(wanted.pools)}): none of its queues gets GPUs there",
            f"label them: `{host.kubectl} label node {' '.join(loose[:3])}"
            f" {NODE_POOL}={next(iter(wanted.pools))} --overwrite`, or with another of its pools",
        )
    for name, there in wanted.pools.items():
        # A shard without any node is told by the check of shards.
        own = [node for node in nodes if shards[node.name] == name]
        place, key = f"pool {name} of team {wanted.name}", f"{wanted.path}.pools.{name}"
        kinds = {wanted.inside.gpu_resource: there} if isinstance(there, int) else there
        for kind, most in kinds.items() if own else ():
            yield from _kind(host, wanted, place, own, kind, most, key)


def _kind(
    host: ClusterState,
    wanted: DeclaredTeam,
    subject: str,
    nodes: Sequence[KubeObject],
    kind: str,
    most: int,
    key: str,
) -> Findings:
    """One kind of GPU on the Ready nodes of a pool, against what the team is to have of it."""
    there = sum(node.gpus(kind) for node in nodes if not _cut(wanted, node, kind))
    what = "GPUs" if kind == wanted.inside.gpu_resource else kind
    as_whole = sum(
        node.gpus(NVIDIA) for node in nodes if node.labels.get(STRATEGY_LABEL) == "single"
    )
    cut = [node.name for node in nodes if _cut(wanted, node, kind) and node.gpus(kind)]
    if there >= most:
        return
    if kind.startswith(PREFIX) and as_whole:
        yield host.warning(
            subject,
            f"its Ready nodes have {there:g} {kind}, and the team is to have {most}: with"
            f" {STRATEGY_LABEL}=single, {as_whole:g} slices are advertised as {NVIDIA}",
            f"write {NVIDIA}: {min(most, int(as_whole))} in its place at {key}, or have the device"
            " plugin's MIG strategy be mixed",
        )
    elif cut:
        yield host.warning(
            subject,
            f"its Ready nodes have {there:g} {what} for KAI, and the team is to have {most}: on"
            f" nodes with slices and {STRATEGY_LABEL}=mixed ({', '.join(cut[:3])}) it places no"
            " whole GPU, and no share of one",
            f"cut all GPUs of a node or none, or lower {key}",
        )
    elif not there:
        yield host.broken(
            subject,
            f"its {counted(len(nodes), 'Ready node', 'advertises')} no {kind}, and the team is to"
            f" have {most}",
            f"look at the device plugin's pods on them, or write 0 at {key} for a team without"
            f" {what}",
        )
    else:
        yield host.warning(
            subject,
            f"its Ready nodes have {there:g} {what}, and the team is to have {most}",
            f"add nodes to the pool, or lower {key}",
        )


def _slices(node: KubeObject) -> list[str]:
    """The kinds of slices that a node advertises."""
    allocatable = node.status.get("allocatable") or {}
    return [name for name in allocatable if name.startswith(PREFIX) and node.gpus(name)]


def _cut(wanted: DeclaredTeam, node: KubeObject, kind: str) -> bool:
    """Whether KAI places no pods with that kind of GPU there, for it has slices (node_info.go)."""
    mixed = node.labels.get(STRATEGY_LABEL) == "mixed" and bool(_slices(node))
    return mixed and wanted.mode != "default" and not kind.startswith(PREFIX)


def _synced(host: ClusterState, wanted: DeclaredTeam, inside: ClusterState) -> Findings:
    own = {node.name for node in host.all("nodes") if in_pool(node.labels, wanted.node_pool)}
    there = {node.name for node in inside.all("nodes")}
    if not own or not wanted.declared or "nodes" in inside.unreadable:
        return
    foreign, lacking = sorted(there - own)[:3], sorted(own - there)[:3]
    if foreign:
        yield inside.broken(
            "nodes inside",
            f"it sees nodes of other pools ({', '.join(foreign)}): its scheduler hands out GPUs of"
            " others",
            f"take sync.fromHost.nodes out of {wanted.path}.vcluster.values, then {inside.apply}",
        )
    elif lacking:
        yield inside.broken(
            "nodes inside",
            f"it does not see nodes of its pool ({', '.join(lacking)}): nothing is scheduled there",
            f"restart the vCluster, which takes them over: `{host.kubectl} -n {wanted.namespace}"
            f" delete pod -l app=vcluster,release={wanted.name}`",
        )
    else:
        yield inside.well("nodes inside")
