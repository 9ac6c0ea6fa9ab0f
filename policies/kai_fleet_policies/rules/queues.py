"""Rules about queues: one tree, of levels, durations and numbers that KAI takes."""

from kai_fleet import releases
from kai_fleet.queues.amounts import is_unlimited_in_spec
from kai_fleet.releases import queue_bounds
from kai_fleet.releases.keys import CHART_PARENT
from kai_fleet.values import UNKNOWN, get, number
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.queues import (
    RESOURCES,
    DeclaredQueue,
)
from kai_fleet_policies.rules.rule import (
    Findings,
    Subject,
    UnknownValueError,
    each_queue,
    mandatory,
    require_known,
)

EXISTING_QUEUES = "existingQueues"


@mandatory("queue-tree", "high", each_queue)
def queue_tree(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """Every queue hangs in one tree: unique names, existing parents, no cycles.

    KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle,
    with everything below it, and says nothing.
    """
    # One finding: the queue is repeated, else in a cycle, else its parent is absent.
    tree = cluster.tree
    name = require_known(queue.name, "the name of the queue is known")
    if queue in tree.repeated:
        yield subject.refuse(
            "is declared twice: queues are cluster-wide, and the later one overwrites the first",
            f"rename one of the two queues {name}",
        )
        return
    chain = [name]
    chain += [str(ancestor.name) for ancestor in tree.ancestors(queue)]
    is_cycle = tree.by_name[chain[-1]].parent == name
    if is_cycle:
        if name == min(chain):  # one finding for all queues of the cycle
            yield subject.at("parent").refuse(
                f"is below itself ({' → '.join([*chain, name])})",
                f"leave the parent of {listed(chain)} out, which then is the top of the others",
            )
        return
    parent = require_known(queue.parent, "the name of its parent is known")
    if parent and parent not in tree.by_name:
        yield _absent_parent(cluster, name, parent, subject.at("parent"))


def _absent_parent(
    cluster: ClusterModel,
    name: str,
    parent: str,
    subject: Subject,
) -> Finding:
    """What to say of a queue whose parent is not declared here: undecided if it may be elsewhere.

    Else it is refused. `subject` is at the parent.

    Raises:
        UnknownValueError: Some queue's name is not known, and may be that of the parent.
    """
    tree = cluster.tree
    if tree.unknown_names:
        raise UnknownValueError("all queue names are known")
    if _may_be_elsewhere(parent, cluster):
        return subject.undecided(
            f"existingQueues: [{parent}] in the pack's configuration of queue-tree says that its"
            f" parent {parent} is in {cluster.name}"
        )
    others = [other for other in tree.by_name if other != name]
    similar = listed(nearest_first(parent, others))
    write = f"write {similar}, or " if similar else ""
    cause = f"has the parent {parent}, which is not declared in {cluster.name}"
    if cluster.declared or cluster.kai:
        return subject.refuse(cause, f"{write}declare {parent} with no parent of its own")
    # A program without a KAI may have some of its queues in another program.
    return subject.refuse(
        cause,
        f"{write}write existingQueues: [{parent}] in the pack's configuration of queue-tree if"
        " another program makes it",
    )


def _may_be_elsewhere(parent: str, cluster: ClusterModel) -> bool:
    """Whether another program, or a chart, may make a parent that is not declared here.

    Never with a stack file. With a KAI here only CHART_PARENT, and only if it is UNKNOWN whether a
    chart makes it: a parent that a chart is known to make is declared. Without a KAI CHART_PARENT,
    and any parent if no queue is the top of a tree; beside a top queue any other is taken for a
    slip.
    """
    if cluster.declared:
        return False
    if cluster.kai:
        return parent == CHART_PARENT and any(kai.makes_queues is UNKNOWN for kai in cluster.kai)
    if parent == CHART_PARENT:
        return True
    return all(queue.parent is not None for queue in cluster.queues)


@mandatory("queue-depth", "high", each_queue)
def queue_depth(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """No more and no fewer levels of queues than the KAI version can schedule from.

    Through v0.12 KAI schedules only from the second level: never from the top, never deeper.
    """
    tree = cluster.tree
    if not isinstance(queue.name, str):
        return  # queue-tree says so
    level = tree.levels.get(queue.name)
    if level is None or tree.by_name[queue.name] is not queue:
        return  # in or below a cycle, below a parent that is absent or UNKNOWN, or repeated
    is_lone = level == 1 and tree.is_leaf(queue.name) and not tree.unknown_parents
    if level <= 2 and not is_lone:
        return
    # Nothing without a KAI here; a version that is absent or not in the table has no known bound.
    for kai in cluster.kai:
        version = require_known(
            kai.version, "the KAI version is known: through v0.12 only two levels work"
        )
        release = releases.KAI.get(str(version))
        if release is None or release.max_queue_depth is None:
            continue
        levels = release.max_queue_depth
        if is_lone:
            yield subject.refuse(
                f"is a top-level queue without children, and KAI {version} never schedules pods"
                " from those",
                f"add a child queue below {queue.name} and let pods name that one",
            )
        elif level == levels + 1:  # what is deeper is below one that is refused
            yield subject.refuse(
                f"is on level {level}, and KAI {version} schedules from {levels} levels only",
                "hang it below a top-level queue, or use KAI v0.14 or newer",
            )


@mandatory("queue-duration", "high", each_queue)
def queue_duration(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """Minimum run times are durations that Go parses, in h, m, s and ms and not negative.

    KAI takes Go durations, which know no days and no weeks: 1d does not parse. One that does not
    parse, or does not fit into 64 bits of nanoseconds, stops its scheduler for all queues.
    """
    # An absent one is fine. An UNKNOWN one, or an UNKNOWN spec, leaves those after it undecided.
    for key in queue_bounds.DURATIONS:
        value = require_known(get(queue.spec, key), f"the value of {key} is known")
        if value is not None and not queue_bounds.is_duration(value):
            yield subject.at(key).refuse(
                f"has {key}: {value}, which is not a duration for KAI (units are h, m and s)",
                "write for example 90s, 1h30m, or 24h for a day; at most 999999h",
            )


@mandatory("queue-bounds", "high", each_queue)
def queue_bounded(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """Priorities, quotas, limits and weights are amounts that a cluster can have.

    KAI checks none of them: a negative amount other than -1, or one beyond any cluster, upsets the
    shares of all queues beside it.
    """
    # Whatever is absent is fine. What is UNKNOWN leaves all that is read after it undecided.
    priority = require_known(get(queue.spec, "priority"), "its priority is known")
    if not _is_within(priority, queue_bounds.PRIORITY):
        yield subject.at("priority").refuse(
            f"has priority {priority}, which no cluster has",
            f"write 0 to {queue_bounds.PRIORITY}",
        )
    for resource in RESOURCES:
        share = get(queue.spec, "resources", resource)
        for key in ("quota", "limit"):
            amount = require_known(get(share, key), f"its {resource} {key} is known")
            most = queue_bounds.MOST[resource]
            if not is_unlimited_in_spec(amount) and not _is_within(amount, most):
                yield subject.at(resource, key).refuse(
                    f"has {resource} {key} {amount}, which no cluster has",
                    f"write 0 to {most}, or -1 for unlimited",
                )
        weight = require_known(
            get(share, "overQuotaWeight"), f"its {resource} overQuotaWeight is known"
        )
        if not _is_within(weight, queue_bounds.WEIGHT):
            yield subject.at(resource, "weight").refuse(
                f"has {resource} overQuotaWeight {weight}, which no cluster has",
                f"write 0 to {queue_bounds.WEIGHT}",
            )


def _is_within(amount: object, most: int) -> bool:
    """Whether an amount, which may be a text but not UNKNOWN, is 0 to `most`, or is None."""
    if amount is None:
        return True
    size = number(amount)
    return isinstance(size, float) and 0 <= size <= most


@mandatory("queue-cluster-scoped", "medium", each_queue)
def queue_cluster_scoped(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """Queues belong to no namespace.

    Queue is a cluster-scoped kind: a namespace on it does nothing but promise a separation that
    is not there, and two queues of one name in two namespaces are one queue.
    """
    if namespace := require_known(queue.namespace, "its metadata.namespace is known"):
        yield subject.refuse(
            f"has the namespace {namespace}, but queues are cluster-wide",
            "leave metadata.namespace out",
        )
