"""Shards and topologies as declared: there, with nodes, and with pods that say whose they are."""

from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL, QUEUE_LABEL
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kai_fleet_cli.waiting.finding import Finding


def check(snapshot: Snapshot) -> Findings:
    """Every cluster that runs KAI."""
    for cluster in snapshot.with_kai:
        yield from _shards(snapshot.host, cluster)
        yield from _pods(cluster)


def check_topologies(snapshot: Snapshot) -> Findings:
    """The topologies of every cluster that runs KAI."""
    for cluster in snapshot.with_kai:
        for name, levels in cluster.wanted.topologies.items():
            yield _topology(cluster, name, list(levels))


def _shards(host: ClusterState, cluster: ClusterState) -> Findings:
    nodes = cluster.all("nodes")
    for name in cluster.wanted.shards:
        subject = f"SchedulingShard {name}"
        has_nodes = (
            name == DEFAULT_SHARD
            or "nodes" in cluster.unreadable
            or any(node.labels.get(NODE_POOL) == name for node in nodes)
        )
        if cluster.named("schedulingshards", name) is None:
            yield cluster.broken(subject, "it is not there, so nobody schedules its queues")
        elif not has_nodes:
            yield cluster.broken(
                subject,
                f"no node has the label {NODE_POOL}={name}: nothing is scheduled there",
                f"label nodes on the host: `{host.kubectl} label node <node> {NODE_POOL}={name}`",
            )
        else:
            yield cluster.well(subject)


def _pods(cluster: ClusterState) -> Findings:
    """A shard's scheduler sees the pods with its label, not those that only name its queue."""
    shard_of = {item.name: item.labels.get(NODE_POOL) for item in cluster.all("queues")}
    for pod in cluster.kai_pods:
        queue, has = pod.labels.get(QUEUE_LABEL), pod.labels.get(NODE_POOL)
        if queue not in shard_of or pod.spec.get("nodeName") or shard_of[queue] == has:
            continue
        wanted = shard_of[queue]
        yield cluster.broken(
            pod.pod_subject,
            f"its queue {queue} is of shard {wanted or DEFAULT_SHARD}, and the pod of"
            f" {has or DEFAULT_SHARD}: neither scheduler places it",
            f"write the label {NODE_POOL}: {wanted}" if wanted else f"drop the label {NODE_POOL}",
        )


def _topology(cluster: ClusterState, name: str, levels: list[str]) -> Finding:
    subject, item = f"Topology {name}", cluster.named("topologies", name)
    has = [level.get("nodeLabel") for level in item.spec.get("levels") or []] if item else []
    if has != levels:
        return cluster.broken(
            subject, f"its levels are {', '.join(has)}" if has else "it is not there"
        )
    labels = {label for node in cluster.all("nodes") for label in node.labels}
    bare = next((level for level in levels if level not in labels), None)
    if bare is not None and "nodes" not in cluster.unreadable:
        return cluster.warning(
            subject,
            f"no node has the label {bare}: placement by it is impossible",
            f"label the nodes with their {bare}, or leave it out of the topology",
        )
    return cluster.well(subject)
