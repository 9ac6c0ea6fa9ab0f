"""A pod for KAI names a queue that takes pods: declared, without children, and its own team's."""

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.releases import takes_external_pod_groups
from kai_fleet.releases.keys import FRACTION, MEMORY, QUEUE_LABEL, SCHEDULER
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.problem import (
    Level,
    ProblemPlace,
    Problems,
    Severity,
    of_team,
    of_workload,
)

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI schedules pods only from leaf queues. A pod that names none, a parent or one that does not"
    " exist stays Pending, in most versions without an event (W1)."
)
REMEDY = f"Write the label {QUEUE_LABEL} with the name of one of the team's leaf queues."


def check(cluster: Cluster) -> Problems:
    """The workloads of a cluster, and the queue of each team in host mode."""
    queues: list[str] = []
    for workload in cluster.workloads:
        place = of_workload(workload, cluster)
        if workload.scheduler not in (SCHEDULER, UNKNOWN):
            # workload-scheduler says what is wrong if it names a queue
            if message := _left_to_operator(workload, cluster):
                yield place.mandatory(message)
            continue
        if workload.writer is not None and workload.writer.queue_elsewhere:
            continue
        queue = workload.queue
        if queue is UNKNOWN:
            yield place.undecided(f"its label {QUEUE_LABEL} is known")
        elif queue is None and workload.scheduler is UNKNOWN:
            yield place.undecided("its schedulerName is known")
        elif queue is None and workload.pod_group and _takes_pod_groups(cluster):
            continue  # the PodGroup that it names has the queue
        elif queue is None:
            yield place.mandatory(
                "asks for KAI and names no queue: KAI would look for one called default-queue;"
                f" write the label {QUEUE_LABEL}: {_choice(cluster)}"
            )
        elif isinstance(queue, str):
            yield from _allowed(queue, cluster, workload, place)
            yield from _on_pods(queue, cluster, workload, place)
            if not cluster.scheduling.queues:
                queues.append(queue)
                continue
            yield from _judge(queue, cluster, place, _where(workload))
    if queues:
        yield ProblemPlace(f"queues of {cluster.scheduling.name}", cluster.path).undecided(
            f"the queues of {cluster.scheduling.name} are declared here:"
            f" {len(queues)} workload(s) name queues such as {queues[0]}"
        )
    for team in cluster.teams:
        if team.mode != "host" or team.queue is None:
            continue
        place = of_team(team, "queue")
        if team.queue is UNKNOWN:
            yield place.undecided("the name of its queue is known")
        else:
            yield from _judge(team.queue, cluster, place)


def _takes_pod_groups(cluster: Cluster) -> bool:
    """Whether a PodGroup that KAI did not make gives its pods their queue: from v0.15.

    Not in host mode: the PodGroup would be one of the host's, where teams make none.
    """
    if cluster.scheduled_by is not None:
        return False
    versions = [release.version for release in cluster.scheduling.kai]
    return all(
        not isinstance(version, str) or takes_external_pod_groups(version) for version in versions
    )


def _on_pods(queue: str, cluster: Cluster, workload: PodTemplate, place: ProblemPlace) -> Problems:
    """KAI reads the label of a pod's owner too, where it can see one."""
    if workload.labels is UNKNOWN:
        return
    if workload.writer is not None and workload.writer.queue:
        return  # its operator copies it to the pods
    if QUEUE_LABEL in workload.labels:
        own = workload.labels[QUEUE_LABEL]
        if own == queue or (cluster.scheduled_by is None and not cluster.guarded):
            return  # the label of the owner wins
        if own is UNKNOWN:
            yield place.undecided(f"the label {QUEUE_LABEL} of its pod template is known")
        elif isinstance(own, str):
            yield from _allowed(own, cluster, workload, place)
            if cluster.scheduling.queues:
                yield from _judge(own, cluster, place, " in the labels of the pod template")
        return
    if cluster.scheduled_by is not None:
        who = f"the KAI of {cluster.scheduled_by.name} sees only the pods, without their owners"
    elif cluster.guarded:
        who = "the guard at admission denies pods that do not name it themselves"
    else:
        return
    yield place.mandatory(
        f"names queue {queue} on the {workload.kind} only, and {who};"
        f" write {QUEUE_LABEL}: {queue} in the labels of the pod template too"
    )


def _allowed(queue: str, cluster: Cluster, workload: PodTemplate, place: ProblemPlace) -> Problems:
    """The queues that the pack's configuration leaves to a namespace (W10)."""
    if not cluster.queues_of:
        return
    if workload.namespace is UNKNOWN:
        yield place.undecided("its namespace is known")
        return
    namespace = workload.namespace or "default"
    own = cluster.queues_of.get(namespace)
    if own is not None and queue not in own:
        choice = listed(nearest_first(queue, list(own))) or "none"
        yield place.mandatory(
            f"names queue {queue}, which pods in namespace {namespace} may not use;"
            f" write {QUEUE_LABEL}: {choice}"
        )


def _left_to_operator(workload: PodTemplate, cluster: Cluster) -> str | None:
    """What is wrong where an operator writes the scheduler, KAI is meant, and no queue is named."""
    writer = workload.writer
    if writer is None or not writer.scheduler or workload.scheduler is not None:
        return None
    if workload.names_queue is not False or workload.annotations is UNKNOWN:
        return None
    default, tree = writer.default_queue, cluster.scheduling.tree
    if default != "default-queue" and default in tree.by_name and tree.is_leaf(default):
        return None
    if not tree.queues and not workload.annotations.keys() & {FRACTION, MEMORY}:
        return None
    return (
        f"names no queue, and {writer.name} with {writer.scheduler_flag} sends its pods to KAI,"
        f" which would look for one called {default}; write {writer.queue_key}:"
        f" {_choice(cluster)} on the {workload.kind}, or schedulerName: default-scheduler in"
        " its pod templates to run it without KAI"
    )


def _where(workload: PodTemplate) -> str:
    """Where the queue is written, if not in the label."""
    writer = workload.writer
    if writer is None or QUEUE_LABEL in writer.queue_key:
        return ""
    return f" in {writer.queue_key} of the {workload.kind}"


def _judge(queue: str, cluster: Cluster, place: ProblemPlace, where: str = "") -> Problems:
    host, tree, own = cluster.scheduling.name, cluster.scheduling.tree, cluster.team_queue
    if own is not None and own is not UNKNOWN and queue != own:
        write = f"{own}{where}" if where else f"{QUEUE_LABEL}: {own}"
        yield place.mandatory(
            f"names queue {queue}, but the queue of team {cluster.name} is {own}; write {write}"
        )
    elif queue not in tree.by_name:
        if tree.unknown_names:
            yield place.undecided(f"all queue names of {host} are known")
            return
        hint = listed(nearest_first(queue, tree.leaves)) or "a leaf queue, declared first"
        yield place.mandatory(
            f"names queue {queue}, which is not declared in {host}: its pods would stay Pending;"
            f" write {hint}{where}"
        )
    elif not tree.is_leaf(queue):
        below = listed(tree.leaves_below(queue)) or "a queue without children"
        yield place.mandatory(
            f"names queue {queue}, which has children and so takes no pods; write {below}{where}"
        )
    elif tree.unknown_parents:
        until = f"the parents of all queues in {host} are known: {queue} may have children"
        yield place.undecided(until)


def _choice(cluster: Cluster) -> str:
    own = cluster.team_queue
    leaves = [own] if isinstance(own, str) else cluster.scheduling.tree.leaves
    return listed(leaves) or "the name of a leaf queue"
