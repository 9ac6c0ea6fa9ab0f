"""Nodes that are Ready, in each team's pool, and advertise its GPUs."""

from collections.abc import Iterator

from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet.kube.pods import MEMORY_LABEL
from kai_fleet.releases.mig import PREFIX
from kai_fleet.settings.sections.platform import NVIDIA
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
    needed = host.kai is not None or any(team.desired.gpus for team in snapshot.teams.values())
    if needed and not any(node.gpus(resource) or _has_slices(node) for node in every):
        yield fault("no-gpus", host, host.name, count=len(every), resource=resource)


def pool(team: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes of a team's pool: there, without taints that it does not tolerate, with GPUs."""
    desired, host = team.desired, snapshot.host
    if not desired.declared or not desired.node_pool:
        return
    labels = " ".join(f"{key}={value}" for key, value in desired.node_pool.items())
    own = [node for node in host.all("nodes") if in_pool(node.labels, desired.node_pool)]
    usable = [node for node in own if node.takes_pods]
    if not usable:
        what = f"none of the {len(own)} nodes" if own else "no node"
        values = {"what": what, "team": desired.name, "labels": labels, "path": desired.path}
        yield fault("pool-without-nodes", host, labels, **values)
        return
    if closed := desired.closed([node.spec.get("taints") or [] for node in usable]):
        yield fault("pool-tainted", host, labels, cause=closed[0], fix=closed[1])
    for resource, granted in desired.kinds.items():
        there = sum(node.gpus(resource) for node in usable)
        if there < granted:
            row = "pool-with-fewer-gpus" if there else "pool-without-gpus"
            values = {"resource": resource, "team": desired.name, "path": desired.gpus_path}
            yield fault(row, host, labels, there=f"{there:g}", granted=granted, **values)


def inside(team: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes that a vCluster with a scheduler of its own sees are those of its pool."""
    desired, host, cluster = team.desired, snapshot.host, team.inside
    if cluster is None or desired.mode != "virtual" or not desired.declared:
        return
    own = {node.name for node in host.all("nodes") if in_pool(node.labels, desired.node_pool)}
    there = {node.name for node in cluster.all("nodes")}
    for name in sorted(there - own) if own else ():
        yield fault("node-of-another-pool", cluster, name, path=desired.path)
    for name in sorted(own - there):
        values = {"host": host.kubectl, "space": desired.namespace, "team": desired.name}
        yield fault("node-not-copied", cluster, name, **values)


def _has_slices(node: KubeObject) -> bool:
    allocatable = node.status.get("allocatable") or {}
    return any(name.startswith(PREFIX) and node.gpus(name) for name in allocatable)
