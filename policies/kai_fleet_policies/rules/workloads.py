"""Rules about pods: a leaf queue, KAI as the scheduler, and keys where KAI reads them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kai_fleet.releases.keys import (
    FRACTION,
    KAI_NAMESPACE,
    MEMORY,
    QUEUE_LABEL,
    RESERVED,
    SCHEDULER,
    right_key,
)
from kai_fleet.urns import read_urn
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet.wording import listed, nearest_first, quoted
from kai_fleet_policies.model.cluster import Cluster, Kai, ManagedObject, Team
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    called,
    each_workload,
    known,
    mandatory,
    of_cluster,
    of_kai,
    of_team,
    row,
)


def _with_queues(cluster: Cluster) -> Iterable[tuple[PodTemplate | Team, Place]]:
    """The workloads of a cluster, and the teams that one queue of it is for."""
    yield from each_workload(cluster)
    for team in cluster.teams:
        if team.mode == "host" and team.queue is not None:
            yield team, of_team(team, "queue")


@mandatory("workload-leaf-queue", "high", _with_queues)
def workload_leaf_queue(cluster: Cluster, item: PodTemplate | Team, place: Place) -> Findings:
    """Pods for KAI, and teams in host mode, name a leaf queue that exists.

    KAI schedules pods only from leaf queues. A pod that names none, a parent or one that does
    not exist stays Pending, in most versions without an event.
    """
    if isinstance(item, Team):
        yield from _named(known(item.queue or "", "the name of its queue is known"), cluster, place)
        return
    if item.scheduler not in (SCHEDULER, UNKNOWN) or item.queue_elsewhere:
        return  # workload-scheduler says what is wrong if it names a queue
    queue = known(item.queue, f"its label {QUEUE_LABEL} is known")
    if queue is None:
        known(item.scheduler, "its schedulerName is known")
        if not item.pod_group:  # which may have the queue, where the guard lets it
            leaves = [cluster.team_queue] if cluster.team_queue else cluster.scheduling.tree.leaves
            yield place.refuse(
                *row("workload-no-queue", queues=listed(leaves) or "the name of a leaf queue")
            )
    elif isinstance(queue, str):  # workload-known-keys reports others
        if cluster.scheduling.queues:
            yield from _named(queue, cluster, place)
        else:
            until = f"the queues of {cluster.scheduling.name} are declared here"
            yield of_cluster("queues", cluster).undecided(until)


def _named(queue: str, cluster: Cluster, place: Place) -> Findings:
    """What is wrong with the name of a queue."""
    host, tree, own = cluster.scheduling.name, cluster.scheduling.tree, cluster.team_queue
    if own not in (None, UNKNOWN, queue):
        yield place.refuse(*row("workload-other-queue", queue=queue, team=cluster.name, own=own))
    elif queue not in tree.by_name:
        if tree.unknown_names:
            yield place.undecided(f"all queue names of {host} are known")
            return
        others = listed(nearest_first(queue, tree.leaves)) or "a leaf queue, declared first"
        yield place.refuse(*row("workload-queue-absent", queue=queue, cluster=host, others=others))
    elif not tree.is_leaf(queue):
        below = listed(tree.leaves_below(queue)) or "a queue without children"
        yield place.refuse(*row("workload-queue-no-leaf", queue=queue, below=below))


@mandatory("workload-scheduler", "high", each_workload)
def workload_scheduler(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """The queue label and `schedulerName: kai-scheduler` come together.

    Without schedulerName the default scheduler places the pod: its queue and its GPU fraction
    are ignored without a word. Without the label KAI leaves it Pending.
    """
    scheduler, named = workload.scheduler, workload.names_queue
    if scheduler == SCHEDULER:
        ungrouped = not workload.pod_group and not workload.queue_elsewhere
        if ungrouped and not known(named, "its labels are known"):
            yield place.refuse(*row("workload-no-label"))
        return
    notes = pairs(workload.annotations)
    reasons = [f"the label {QUEUE_LABEL}"] if named is True else []
    reasons += [f"the annotation {key}" for key in (FRACTION, MEMORY) if key in notes]
    if reasons:
        name = known(scheduler, "its schedulerName is known")
        has = f"schedulerName: {name}" if name else "no schedulerName"
        yield place.refuse(*row("workload-not-for-kai", keys=listed(reasons, "and"), has=has))
    known(named, "its labels are known")
    known(workload.annotations, "its annotations are known")


@mandatory("workload-known-keys", "high", each_workload)
def workload_known_keys(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """Labels and annotations that KAI reads, in the place where it reads them, as strings.

    KAI ignores keys that it does not know: a pod with kai.scheduler/gpu-fraction runs without a
    GPU, or on one that nobody accounts. Values of labels and annotations are strings.
    """
    wrong = (
        *_keys(workload.labels, "label"),
        *_keys(workload.annotations, "annotation"),
        *_keys(workload.owner_labels, "label"),
    )
    for cause, fix in dict.fromkeys(wrong):
        yield place.refuse(cause, fix)
    if UNKNOWN in (workload.labels, workload.annotations, workload.owner_labels):
        yield place.undecided("all its labels and annotations are known")


def _keys(texts: Mapping[str, object], kind: str) -> Iterator[tuple[str, str]]:
    for key, value in pairs(texts).items():
        right = right_key(key)
        meant = "label" if right == QUEUE_LABEL else "annotation"
        if right not in (None, key):
            fix = f"write the {meant} {right}" if right else "remove it"
            yield f"has the {kind} {key}, which no supported KAI version reads", fix
        elif right is not None and kind != meant:
            yield f"has {key} as {kind}; KAI reads it as {meant}: move it there", ""
        if value not in (None, UNKNOWN) and not isinstance(value, str):
            cause = f"has the {kind} {key} with a value that is not a string"
            yield cause, f"write {key}: {quoted(value)}"


# What KAI itself needs beside its release: pull secrets, rights, network rules, scraping.
_KAI_SUPPORT: Final = (
    *("NetworkPolicy", "PodMonitor", "ServiceMonitor"),
    *("Role", "RoleBinding", "Secret", "ServiceAccount"),
)


def _placed(cluster: Cluster) -> Iterable[tuple[PodTemplate | ManagedObject | Kai, Place]]:
    """Everything in a namespace; of what Pulumi's Chart makes, by the type in its URN, only what is
    in KAI's.
    """
    objects = (
        (item, Place(item.kind, f"{called(item.name)} in {cluster.name}", item.path))
        for item in cluster.objects
    )
    for item, place in (*each_workload(cluster), *objects):
        of_chart = any(kind.endswith(":Chart") for kind in read_urn(place.path).above)
        if not of_chart or item.namespace == KAI_NAMESPACE:
            yield item, place
    yield from ((kai, of_kai(kai, cluster, "namespace")) for kai in cluster.kai)


@mandatory("namespace-reserved", "critical", _placed)
def namespace_reserved(
    cluster: Cluster, item: PodTemplate | ManagedObject | Kai, place: Place
) -> Findings:
    """Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs.

    KAI's admission lets pods in these namespaces through unseen, and removing KAI deletes
    every Deployment in its own.
    """
    namespace = item.namespace
    if isinstance(item, PodTemplate | Kai) or item.kind == "Release":
        known(namespace, "its namespace is known")
    if isinstance(item, Kai):
        if namespace != KAI_NAMESPACE:
            yield place.refuse(*row("kai-namespace", namespace=namespace or "default"))
    elif isinstance(item, PodTemplate):
        if namespace in RESERVED:
            which = "pod-beside-kai" if namespace == KAI_NAMESPACE else "namespace-reserved"
            yield place.refuse(*row(which, namespace=namespace))
    elif namespace == KAI_NAMESPACE and item.kind not in _KAI_SUPPORT:
        yield place.refuse(*row("object-beside-kai"))
