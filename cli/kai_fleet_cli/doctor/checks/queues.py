"""Checks of KAI's queues, shards and topologies.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from collections.abc import Collection, Iterator

from kai_fleet.cluster.queues import TREE
from kai_fleet.releases.keys import CHART_QUEUES, DEFAULT_SHARD, NODE_POOL
from kai_fleet_cli.doctor.faults import NAMES, Affected, Fault, Faults, being_deleted
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_policies.model.queues import QueueIndex


def queues(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a KAI without any queue, queues that it ignores, and queues that are not declared.

    The second are broken, the others warnings. The first only if the stack declares no queue
    either: declared ones are required. KAI schedules from queues only, and ignores those in or
    below a cycle, or below an absent parent. In a cluster that another stack declares no queue
    counts as undeclared.
    """
    index = QueueIndex(cluster.queues)
    if not index.queues and not cluster.desired.queues:
        yield Affected(cluster, "cluster", cluster.name).warning(
            "has no queue: KAI schedules no pod",
            f"declare one at {cluster.desired.queues_key}, then ",
            cluster.apply_command,
        )
    for queue in index.queues:
        if queue.name not in index.levels:
            yield Affected(cluster, "queue", str(queue.name)).broken(
                f"its parent {queue.parent} is not there, or is itself below such a one: KAI drops"
                " it",
                cluster.update_command,
                f", or give it another parent at {cluster.desired.queues_key}",
            )
    if cluster.desired.declared:
        yield from _undeclared_queues(cluster, snapshot, index)


def _undeclared_queues(cluster: Cluster, snapshot: Snapshot, index: QueueIndex) -> Faults:
    """Yield a warning for each queue that neither the stack nor a team's own stack declares.

    Children before their parents: KAI does not delete a queue with children. Queues that it ignores
    are last.
    """
    declared = {*cluster.desired.queue_specs, *_queues_of_team_stacks(cluster, index)}
    teams = (*snapshot.teams, *snapshot.settings.team_stacks)
    trees = {"host-queues", *(f"{team}-queues" for team in teams)}
    for name in sorted(index.by_name, key=lambda name: (-index.levels.get(name, 0), name)):
        if name not in declared:
            yield _undeclared_queue(cluster, name, trees)


def _queues_of_team_stacks(cluster: Cluster, index: QueueIndex) -> Iterator[str]:
    """Yield the names of the queues that teams made with stacks of their own, below the queue
    granted to them. They are the team's name, or begin with it and a dash.
    """
    for grant in cluster.desired.grants:
        if grant.queue not in index.by_name:
            continue
        for name in index.below(grant.queue):
            if f"{name}-".startswith(f"{grant.name}-"):
                yield name


def _undeclared_queue(cluster: Cluster, name: str, trees: Collection[str]) -> Fault:
    """Return the warning for a queue that the stack does not declare, by the first that applies.

    It is being deleted, is left over from this cluster's tree, belongs to another program, was
    created by KAI's chart, or by hand.

    Args:
        cluster: Its cluster.
        name: Its name.
        trees: Names of the queue trees that this stack may declare.
    """
    subject = Affected(cluster, "queue", name)
    queue = cluster.find("queues", name)
    if queue is not None and queue.is_being_deleted:
        return being_deleted(subject, queue, "queues", declared=False)
    key = cluster.desired.queues_key
    delete = cluster.command(f"delete queue {NAMES}")
    tree = None if queue is None else queue.labels.get(TREE)
    if tree == f"{cluster.name}-queues":
        return subject.warning(
            "is left over from this stack, whose file does not have it any more",
            cluster.update_command,
            f", which deletes it; or put it back at {key}",
        )
    if tree is not None and tree not in trees:
        return subject.warning(
            f"is of the tree {tree}, which this stack does not have: another program made it",
            "leave it to whoever has it",
        )
    if name in CHART_QUEUES:
        return subject.warning(
            "KAI's chart made it, with a quota of 0: it takes its part of what others leave",
            delete,
            "; leave defaultQueue.createDefaultQueue out of the values",
        )
    return subject.warning(
        "somebody made it by hand: the stack does not declare it",
        f"declare it at {key}, or delete it: ",
        delete,
    )


def shards(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield declared shards, and as warnings topology levels, that no node has the label for.

    The nodes are those that the cluster shows. The default shard needs no label. No shards of a
    team with an autoscaler, which may add the nodes; its topology levels are looked at.
    """
    scheduler = cluster.desired.scheduler
    labels = set[tuple[str, str]]()
    for node in cluster.all("nodes"):
        labels.update(node.labels.items())
    team = snapshot.settings.teams.get(cluster.name)
    if team is None or not team.autoscaled:
        for shard in scheduler.shards:
            label = f"{NODE_POOL}={shard}"
            if shard != DEFAULT_SHARD and (NODE_POOL, shard) not in labels:
                yield Affected(cluster, "SchedulingShard", shard).broken(
                    f"no node has the label {label}: nothing is scheduled there",
                    "label nodes on the host: ",
                    snapshot.host.command(f"label node <node> {label}"),
                )
    keys = {key for key, _ in labels}
    for name, levels in scheduler.topologies.items():
        for level in set(levels) - keys:
            yield Affected(cluster, "Topology", name).warning(
                f"no node has the label {level}: placement by it is impossible",
                f"label the nodes with their {level}, or leave it out of the topology",
            )
