"""GPUs: nodes that are Ready, in each team's pool, and that advertise them (V16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kai_fleet.settings.quantities import parse_quantity
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.declared import HOST, NVIDIA
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import Object, is_true, labels_of, name_of, spec, status

NAME = "nodes"
_MEMORY = "nvidia.com/gpu.memory"


def check(look: Snapshot) -> Iterator[Finding]:
    """The host's nodes, pool by pool, and what each vCluster sees of them."""
    host = look.host
    if "nodes" in host.unreadable:
        return
    yield from _host(look)
    for team in look.teams.values():
        yield from _pool(host, team)
        if team.wanted.mode == "virtual" and team.inside is not None:
            yield from _synced(host, team, team.inside)


def gpus(node: Object, resource: str) -> float:
    """How many GPUs a node advertises under that name."""
    allocatable = status(node).get("allocatable") or {}
    return float(parse_quantity(allocatable.get(resource, 0)))


def ready(node: Object) -> bool:
    """Whether pods may come to a node."""
    return is_true(node, "Ready") and not spec(node).get("unschedulable")


def in_pool(node: Object, pool: Mapping[str, str]) -> bool:
    """Whether a node carries all the labels of a pool."""
    return all(labels_of(node).get(key) == value for key, value in pool.items())


def _host(look: Snapshot) -> Iterator[Finding]:
    host, resource = look.host, look.host.wanted.gpu_resource
    nodes = host.all("nodes")
    for node in nodes:
        if not is_true(node, "Ready"):
            yield host.warning(
                NAME,
                f"node {name_of(node)}",
                "it is not Ready",
                f"look with: `{host.kubectl} describe node {name_of(node)}`",
            )
    with_gpus = [node for node in nodes if gpus(node, resource)]
    wants = any(team.wanted.gpus or team.wanted.gpus is None for team in look.teams.values())
    if not with_gpus and host.name != HOST:
        if host.kai is not None:
            cause = f"none of the {len(nodes)} nodes that it sees advertises {resource}"
            fix = "ask the platform's engineers: what it sees are the Ready nodes of its pool"
            yield host.broken(NAME, f"GPUs of vCluster {host.name}", cause, fix)
    elif not with_gpus and (wants or host.kai is not None):
        yield host.broken(
            NAME,
            "GPUs of the host",
            f"none of {len(nodes)} nodes advertises {resource}",
            "set kai-fleet:gpu.provider to operator or device-plugin, and look at its pods; for"
            " another vendor's GPUs set kai-fleet:gpu.resource",
        )
    elif with_gpus:
        yield host.well(NAME, f"{len(with_gpus)} nodes advertise {resource}")
    if resource == NVIDIA:
        for node in with_gpus:
            if _MEMORY not in labels_of(node):
                yield host.warning(
                    NAME,
                    f"node {name_of(node)}",
                    f"it has GPUs and no label {_MEMORY}: no pod with gpu-memory is placed there",
                    "run NVIDIA's GPU feature discovery (kai-fleet:gpu.provider: operator), or"
                    f" label it: `{host.kubectl} label node {name_of(node)} {_MEMORY}=<MiB>`",
                )


def _pool(host: ClusterState, team: TeamState) -> Iterator[Finding]:
    wanted = team.wanted
    if not wanted.declared or not wanted.node_pool:
        return
    pool = ",".join(f"{key}={value}" for key, value in wanted.node_pool.items())
    subject, resource = f"node pool {pool} of team {wanted.name}", wanted.inside.gpu_resource
    nodes = [node for node in host.all("nodes") if in_pool(node, wanted.node_pool)]
    usable = [node for node in nodes if ready(node)]
    there = sum(gpus(node, resource) for node in usable)
    if not usable:
        what = f"none of its {len(nodes)} nodes is Ready" if nodes else "no node has these labels"
        yield host.broken(
            NAME,
            subject,
            f"{what}: every pod of the team, its DNS among them, stays Pending",
            f"label nodes: `{host.kubectl} label node <node> {pool.replace(',', ' ')}`, or write"
            f" labels that nodes have at {wanted.key}.nodePool",
        )
    elif wanted.gpus and not there:
        yield host.broken(
            NAME,
            subject,
            f"its {len(usable)} Ready nodes advertise no {resource}, and the team is to have"
            f" {wanted.gpus}",
            "look at the device plugin's pods on them, or write 0 at"
            f" {wanted.key}.gpus for a team without GPUs",
        )
    elif wanted.gpus and there < wanted.gpus:
        yield host.warning(
            NAME,
            subject,
            f"its Ready nodes have {there:g} GPUs, and the team is to have {wanted.gpus}",
            f"add nodes to the pool, or lower {wanted.key}.gpus",
        )
    else:
        yield host.well(NAME, subject)


def _synced(host: ClusterState, team: TeamState, inside: ClusterState) -> Iterator[Finding]:
    pool = team.wanted.node_pool
    wanted = {name_of(node) for node in host.all("nodes") if in_pool(node, pool)}
    there = {name_of(node) for node in inside.all("nodes")}
    if not wanted or not team.wanted.declared or "nodes" in inside.unreadable:
        return
    if there - wanted:
        names = ", ".join(sorted(there - wanted)[:3])
        yield inside.broken(
            NAME,
            "nodes inside",
            f"it sees nodes of other pools ({names}): its scheduler hands out GPUs of others",
            f"take sync.fromHost.nodes out of {team.wanted.key}.vcluster.values,"
            f" then {inside.update}",
        )
    elif wanted - there:
        names = ", ".join(sorted(wanted - there)[:3])
        yield inside.broken(
            NAME,
            "nodes inside",
            f"it does not see nodes of its pool ({names}): nothing is scheduled there",
            f"restart the vCluster, which takes them over: `{host.kubectl} -n"
            f" {team.wanted.namespace} delete pod {team.wanted.name}-0`",
        )
    else:
        yield inside.well(NAME, "nodes inside")
