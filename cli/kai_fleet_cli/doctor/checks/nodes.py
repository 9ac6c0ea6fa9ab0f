"""GPUs: nodes that are Ready, in each team's pool, and that advertise them (V16)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kai_fleet.fleet.model import HOST, NVIDIA
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot, TeamState
from kubectl_fleet.declared import plain
from kubectl_fleet.live.node_facts import gpus, in_pool, ready
from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.wording import counted

_MEMORY = "nvidia.com/gpu.memory"


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
            yield from _pool(host, team)
            yield from _tainted(host, team)
        if team.wanted.mode == "virtual" and team.inside is not None:
            yield from _synced(host, team, team.inside)


def _advertised(snapshot: Snapshot) -> Findings:
    host, resource = snapshot.host, snapshot.host.wanted.gpu_resource
    nodes = host.all("nodes")
    with_gpus = [node for node in nodes if gpus(node, resource)]
    wants = any(team.wanted.gpus != 0 for team in snapshot.teams.values())
    if with_gpus:
        yield host.well(f"{counted(len(with_gpus), 'node', 'advertises')} {resource}")
        if resource == NVIDIA:
            yield from _without_memory(host, with_gpus)
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
        if _MEMORY not in node.labels:
            yield host.warning(
                f"node {node.name}",
                f"it has GPUs and no label {_MEMORY}: no pod with gpu-memory is placed there",
                "run NVIDIA's GPU feature discovery (kai-fleet:gpu.provider: operator), or label"
                f" it: `{host.kubectl} label node {node.name} {_MEMORY}=<MiB>`",
            )


def _pool(host: ClusterState, team: TeamState) -> Findings:
    wanted = team.wanted
    pool = ",".join(f"{key}={value}" for key, value in wanted.node_pool.items())
    subject, resource = f"node pool {pool} of team {wanted.name}", wanted.inside.gpu_resource
    nodes = [node for node in host.all("nodes") if in_pool(node, wanted.node_pool)]
    usable = [node for node in nodes if ready(node)]
    there = sum(gpus(node, resource) for node in usable)
    if not usable:
        what = f"none of its {len(nodes)} nodes is Ready" if nodes else "no node has these labels"
        yield host.broken(
            subject,
            f"{what}: every pod of the team, its DNS among them, stays Pending",
            f"label nodes: `{host.kubectl} label node <node> {pool.replace(',', ' ')}`, or write"
            f" labels that nodes have at {wanted.path}.nodePool",
        )
    elif wanted.gpus and not there:
        yield host.broken(
            subject,
            f"its {counted(len(usable), 'Ready node', 'advertises')} no {resource}, and the"
            f" team is to have {wanted.gpus}",
            f"look at the device plugin's pods on them, or write 0 at {wanted.path}.gpus for a team"
            " without GPUs",
        )
    elif wanted.gpus and there < wanted.gpus:
        yield host.warning(
            subject,
            f"its Ready nodes have {counted(there, 'GPU')}, and the team is to have {wanted.gpus}",
            f"add nodes to the pool, or lower {wanted.path}.gpus",
        )
    else:
        yield host.well(subject)


def _tainted(host: ClusterState, team: TeamState) -> Findings:
    """A pool of which every node has a taint that the team's pods do not tolerate."""
    wanted, pods = team.wanted, ("sync", "toHost", "pods", "enforceTolerations")
    nodes = [it for it in host.all("nodes") if ready(it) and in_pool(it, wanted.node_pool)]
    foreign = [
        [
            taint
            for taint in node.spec.get("taints") or []
            if taint.get("effect") in ("NoSchedule", "NoExecute")
            and not str(taint["key"]).startswith("node.kubernetes.io/")
            and not any(
                it.tolerates(taint["key"], taint.get("value", ""), taint["effect"])
                for it in wanted.tolerations
            )
        ]
        for node in nodes
    ]
    if wanted.granted or not nodes or not all(foreign) or plain.get(wanted.values, *pods):
        return
    keys = ("key", "value", "effect")
    taint = foreign[0][0]
    place = (
        f"kai-fleet:teamStacks.{wanted.name} of the platform" if wanted.own_stack else wanted.path
    )
    written = ", ".join(f"{key}: {json.dumps(taint[key])}" for key in keys if taint.get(key))
    yield host.warning(
        f"taints of the nodes of team {wanted.name}",
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{{{written}}}] at {place}, then {host.update}",
    )


def _synced(host: ClusterState, team: TeamState, inside: ClusterState) -> Findings:
    pool = team.wanted.node_pool
    wanted = {node.name for node in host.all("nodes") if in_pool(node, pool)}
    there = {node.name for node in inside.all("nodes")}
    if not wanted or not team.wanted.declared or "nodes" in inside.unreadable:
        return
    if there - wanted:
        names = ", ".join(sorted(there - wanted)[:3])
        yield inside.broken(
            "nodes inside",
            f"it sees nodes of other pools ({names}): its scheduler hands out GPUs of others",
            f"take sync.fromHost.nodes out of {team.wanted.path}.vcluster.values,"
            f" then {inside.update}",
        )
    elif wanted - there:
        names = ", ".join(sorted(wanted - there)[:3])
        yield inside.broken(
            "nodes inside",
            f"it does not see nodes of its pool ({names}): nothing is scheduled there",
            f"restart the vCluster, which takes them over: `{host.kubectl} -n"
            f" {team.wanted.namespace} delete pod -l app=vcluster,release={team.wanted.name}`",
        )
    else:
        yield inside.well("nodes inside")
