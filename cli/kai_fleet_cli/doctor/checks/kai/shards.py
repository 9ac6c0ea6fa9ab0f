"""Shards and topologies as declared: there, with nodes, and with pods that say whose they are."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.kai.keys import QUEUE_LABEL
from kai_fleet.settings.sections.scheduling import DEFAULT_SHARD, NODE_POOL
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import labels_of, name_of, pod_subject, spec

NAME = "shards"
TOPOLOGIES = "topologies"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every cluster that runs KAI."""
    for cluster in look.with_kai:
        yield from _shards(look.host, cluster)
        yield from _pods(cluster)
        yield from _topologies(cluster)


def _shards(host: ClusterState, cluster: ClusterState) -> Iterator[Finding]:
    for name in cluster.wanted.shards:
        subject = f"SchedulingShard {name}"
        if cluster.named("schedulingshards", name) is None:
            yield cluster.broken(
                NAME, subject, "it is not there, so nobody schedules its queues", cluster.update
            )
        elif name != DEFAULT_SHARD and not _nodes(cluster, name):
            yield cluster.broken(
                NAME,
                subject,
                f"no node has the label {NODE_POOL}={name}: nothing is scheduled there",
                f"label nodes on the host: `{host.kubectl} label node <node> {NODE_POOL}={name}`",
            )
        else:
            yield cluster.well(NAME, subject)


def _nodes(cluster: ClusterState, shard: str) -> bool:
    if "nodes" in cluster.unreadable:
        return True
    return any(labels_of(node).get(NODE_POOL) == shard for node in cluster.all("nodes"))


def _pods(cluster: ClusterState) -> Iterator[Finding]:
    """A shard's scheduler sees the pods with its label, not those that only name its queue."""
    shard_of = {name_of(item): labels_of(item).get(NODE_POOL) for item in cluster.all("queues")}
    for pod in cluster.kai_pods:
        queue = labels_of(pod).get(QUEUE_LABEL)
        wanted, has = shard_of.get(str(queue)), labels_of(pod).get(NODE_POOL)
        if queue not in shard_of or spec(pod).get("nodeName") or wanted == has:
            continue
        fix = f"write the label {NODE_POOL}: {wanted}" if wanted else f"drop the label {NODE_POOL}"
        yield cluster.broken(
            NAME,
            pod_subject(pod),
            f"its queue {queue} is of shard {wanted or DEFAULT_SHARD}, and the pod of"
            f" {has or DEFAULT_SHARD}: neither scheduler places it",
            fix,
        )


def _topologies(cluster: ClusterState) -> Iterator[Finding]:
    for name, levels in cluster.wanted.topologies.items():
        subject = f"Topology {name}"
        item = cluster.named(TOPOLOGIES, name)
        has = [level.get("nodeLabel") for level in spec(item).get("levels") or []] if item else []
        if has != list(levels):
            cause = f"its levels are {', '.join(has)}" if has else "it is not there"
            yield cluster.broken(TOPOLOGIES, subject, cause, cluster.update)
            continue
        bare = [
            label
            for label in levels
            if not any(label in labels_of(node) for node in cluster.all("nodes"))
        ]
        if bare and "nodes" not in cluster.unreadable:
            yield cluster.warning(
                TOPOLOGIES,
                subject,
                f"no node has the label {bare[0]}: placement by it is impossible",
                f"label the nodes with their {bare[0]}, or leave it out of the topology",
            )
        else:
            yield cluster.well(TOPOLOGIES, subject)
