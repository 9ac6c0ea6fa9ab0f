"""Queues, shards and topologies: those that are declared are there, and no others."""

from collections.abc import Iterator
from typing import Final

from kai_fleet.fleet.queues import QueueIndex
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL
from kai_fleet_cli.doctor.causes import Fault, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import queue_of

_BY_CHART: Final = ("default-parent-queue", "default-queue")


def queues(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """KAI schedules from queues only, and drops those that hang below none."""
    desired, index = cluster.desired, QueueIndex(map(queue_of, cluster.all("queues")))
    if not index.queues and not desired.queues:
        yield fault("no-queue", cluster, cluster.name)
    levels, known = index.levels, {*desired.queue_specs}
    for queue in index.queues:
        if queue.name not in levels:
            yield fault("queue-dropped", cluster, queue.name, parent=queue.parent)
    for grant in desired.grants:  # a team stack makes its own below it
        own = [queue for queue in index.queues if f"{queue.name}-".startswith(f"{grant.name}-")]
        above = {queue.name: {up.name for up in index.ancestors(queue)} for queue in own}
        known |= {name for name, of_name in above.items() if grant.parent_queue in of_name}
    # KAI does not delete a queue that has children.
    for name in sorted(index.by_name, key=lambda name: (-levels.get(name, 0), name)):
        if desired.declared and name not in known:
            row = "queue-by-chart" if name in _BY_CHART else "queue-by-hand"
            yield fault(row, cluster, name)


def shards(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Shards and topologies, and nodes with their labels."""
    desired = cluster.desired
    labels = {pair for node in cluster.all("nodes") for pair in node.labels.items()}
    for shard in desired.shards:
        if shard != DEFAULT_SHARD and (NODE_POOL, shard) not in labels:
            host = snapshot.host.kubectl
            yield fault("shard-without-nodes", cluster, shard, shard=shard, host=host)
    for name, levels in desired.topologies.items():
        for level in set(levels) - {key for key, _ in labels}:
            yield fault("topology-without-nodes", cluster, name, label=level)
