"""Nodes that are Ready, in each team's pool, and advertise its GPUs."""

from collections.abc import Iterator

from kai_fleet.existing import closed_pool
from kai_fleet.fleet.arguments import Arguments
from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet.kube.pods import MEMORY_LABEL
from kai_fleet.releases.mig import PREFIX
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState


def nodes(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """The host's nodes: Ready, with GPUs, and with the label of their memory."""
    resource, every = host.desired.gpu_resource, host.all("nodes")
    for node in every:
        if not node.is_true("Ready"):
            yield fault("node-not-ready", host, node.name)
        if resource == NVIDIA and node.gpus(resource) and MEMORY_LABEL not in node.labels:
            yield fault("node-without-memory-label", host, node.name, label=MEMORY_LABEL)
    needed = host.kai is not None or any(state.team.gpus for state in snapshot.teams.values())
    if needed and not any(node.gpus(resource) or _has_slices(node) for node in every):
        yield fault("no-gpus", host, host.name, count=len(every), resource=resource)


def pool(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes of a team's pool: there, without taints that it does not tolerate, with GPUs."""
    team, host = state.team, snapshot.host
    if not team.node_pool:
        return
    labels = " ".join(f"{key}={value}" for key, value in team.node_pool.items())
    own = [node for node in host.all("nodes") if in_pool(node.labels, team.node_pool)]
    usable = [node for node in own if node.takes_pods]
    if not usable:
        what = f"none of the {len(own)} nodes" if own else "no node"
        values = {"what": what, "team": team.name, "labels": labels, "path": team.path}
        yield fault("pool-without-nodes", host, labels, **values)
        return
    if not state.granted and not value_at(team.values, "sync.toHost.pods.enforceTolerations"):
        tolerations = Arguments(snapshot.settings).namespace(team.name)["tolerations"]
        granted = f"kai-fleet:teamStacks.{team.name} of the platform"
        path = granted if snapshot.settings.platform_stack else team.path
        taints = [node.spec.get("taints") or [] for node in usable]
        if closed := closed_pool(tolerations, taints, path):
            yield fault("pool-tainted", host, labels, cause=closed[0], fix=closed[1])
    for resource, granted_gpus in team.kinds.items():
        there = sum(node.gpus(resource) for node in usable)
        if there < granted_gpus:
            row = "pool-with-fewer-gpus" if there else "pool-without-gpus"
            values = {"resource": resource, "team": team.name, "path": team.gpus_path}
            yield fault(row, host, labels, there=f"{there:g}", granted=granted_gpus, **values)


def inside(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes that a vCluster with a scheduler of its own sees are those of its pool."""
    team, host, cluster = state.team, snapshot.host, state.inside
    if cluster is None or team.mode != "virtual":
        return
    own = {node.name for node in host.all("nodes") if in_pool(node.labels, team.node_pool)}
    there = {node.name for node in cluster.all("nodes")}
    for name in sorted(there - own) if own else ():
        yield fault("node-of-another-pool", cluster, name, path=team.path)
    for name in sorted(own - there):
        values = {"host": host.kubectl, "space": team.namespace, "team": team.name}
        yield fault("node-not-copied", cluster, name, **values)


def _has_slices(node: KubeObject) -> bool:
    allocatable = node.status.get("allocatable") or {}
    return any(name.startswith(PREFIX) and node.gpus(name) for name in allocatable)
