"""Rules about pods: a leaf queue, KAI as the scheduler, and keys where KAI reads them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kai_fleet.releases import takes_external_pod_groups
from kai_fleet.releases.keys import (
    FRACTION,
    KAI_NAMESPACE,
    MEMORY,
    QUEUE_LABEL,
    RESERVED,
    SCALING_NAMESPACE,
    SCHEDULER,
    right_key,
)
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet.wording import listed, nearest_first, quoted
from kai_fleet_policies.model.cluster import Cluster, Kai, ManagedObject, Team
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.places import WORKLOADS, Place, called, of_cluster, of_kai, of_team
from kai_fleet_policies.rules.rule import Findings, known, mandatory


def _with_queues(cluster: Cluster) -> Iterable[tuple[PodTemplate | Team, Place]]:
    """The workloads of a cluster, and the teams that one queue of it is for."""
    yield from WORKLOADS(cluster)
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
    if item.scheduler not in (SCHEDULER, UNKNOWN):
        # workload-scheduler says what is wrong if it names a queue
        yield from _left_to_operator(item, cluster, place)
        return
    if item.writer is not None and item.writer.queue_elsewhere:
        return
    queue = known(item.queue, f"its label {QUEUE_LABEL} is known")
    if queue is None:
        known(item.scheduler, "its schedulerName is known")
        if item.pod_group and _takes_pod_groups(cluster):
            return  # the PodGroup that it names has the queue
        yield place.refuse(
            "asks for KAI and names no queue: KAI would look for one called default-queue",
            f"write the label {QUEUE_LABEL}: {_choice(cluster)}",
        )
    elif isinstance(queue, str):
        yield from _on_pods(queue, cluster, item, place)
        if cluster.scheduling.queues:
            key = item.writer.queue_key if item.writer is not None else QUEUE_LABEL
            where = "" if QUEUE_LABEL in key else f" in {key} of the {item.kind}"
            yield from _named(queue, cluster, place, where)
        elif item is next(pods for pods in cluster.workloads if isinstance(pods.queue, str)):
            count = sum(bool(pods.queue) for pods in cluster.workloads)
            yield of_cluster("queues", cluster).undecided(
                f"the queues of {cluster.scheduling.name} are declared here: {count} workload(s)"
                f" name queues such as {queue}"
            )


def _takes_pod_groups(cluster: Cluster) -> bool:
    """Whether a PodGroup that KAI did not make gives its pods their queue: from v0.15.

    Not in host mode: the PodGroup would be one of the host's, where teams make none.
    """
    versions = (kai.version for kai in cluster.kai)
    return cluster.scheduled_by is None and all(
        takes_external_pod_groups(version) for version in versions if isinstance(version, str)
    )


def _on_pods(queue: str, cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """KAI reads the label of a pod's owner too, where it can see one."""
    if cluster.scheduled_by is not None:
        who = f"the KAI of {cluster.scheduled_by.name} sees only the pods, without their owners"
    elif cluster.guarded:
        who = "the guard at admission denies pods that do not name it themselves"
    else:
        return  # the label of the owner wins
    if workload.labels is UNKNOWN or (workload.writer is not None and workload.writer.queue):
        return  # its operator copies it to the pods
    own = workload.labels.get(QUEUE_LABEL)
    if own is None:
        yield place.refuse(
            f"names queue {queue} on the {workload.kind} only, and {who}",
            f"write {QUEUE_LABEL}: {queue} in the labels of the pod template too",
        )
    elif own != queue:
        own = known(own, f"the label {QUEUE_LABEL} of its pod template is known")
        if cluster.scheduling.queues:
            yield from _named(own, cluster, place, " in the labels of the pod template")


def _left_to_operator(workload: PodTemplate, cluster: Cluster, place: Place) -> Findings:
    """An operator writes the scheduler, KAI is meant, and no queue is named."""
    writer, tree = workload.writer, cluster.scheduling.tree
    if writer is None or not writer.scheduler or workload.scheduler is not None:
        return
    if workload.names_queue is not False or workload.annotations is UNKNOWN:
        return
    default = writer.default_queue
    if default in tree.leaves and default != "default-queue":
        return
    if tree.queues or workload.annotations.keys() & {FRACTION, MEMORY}:
        yield place.refuse(
            f"names no queue, and {writer.name} with {writer.scheduler_flag} sends its pods to"
            f" KAI, which would look for one called {default}",
            f"write {writer.queue_key}: {_choice(cluster)} on the {workload.kind}, or"
            " schedulerName: default-scheduler in its pod templates to run it without KAI",
        )


def _named(queue: str, cluster: Cluster, place: Place, where: str = "") -> Findings:
    """What is wrong with the name of a queue; `where` it is written, if not in the label."""
    host, tree, own = cluster.scheduling.name, cluster.scheduling.tree, cluster.team_queue
    if own is not None and own is not UNKNOWN and queue != own:
        yield place.refuse(
            f"names queue {queue}, but the queue of team {cluster.name} is {own}",
            f"write {own}{where}" if where else f"write {QUEUE_LABEL}: {own}",
        )
    elif queue not in tree.by_name and tree.unknown_names:
        yield place.undecided(f"all queue names of {host} are known")
    elif queue not in tree.by_name:
        hint = listed(nearest_first(queue, tree.leaves)) or "a leaf queue, declared first"
        yield place.refuse(
            f"names queue {queue}, which is not declared in {host}: its pods would stay Pending",
            f"write {hint}{where}",
        )
    elif not tree.is_leaf(queue):
        below = listed(tree.leaves_below(queue)) or "a queue without children"
        yield place.refuse(
            f"names queue {queue}, which has children and so takes no pods", f"write {below}{where}"
        )
    elif tree.unknown_parents:
        yield place.undecided(
            f"the parents of all queues in {host} are known: {queue} may have children"
        )


def _choice(cluster: Cluster) -> str:
    own = cluster.team_queue
    leaves = [own] if isinstance(own, str) else cluster.scheduling.tree.leaves
    return listed(leaves) or "the name of a leaf queue"


@mandatory("workload-scheduler", "high", WORKLOADS)
def workload_scheduler(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """The queue label and `schedulerName: kai-scheduler` come together.

    Without schedulerName the default scheduler places the pod: its queue and its GPU fraction
    are ignored without a word. Without the label KAI leaves it Pending.
    """
    scheduler, writer = workload.scheduler, workload.writer
    if scheduler == SCHEDULER:
        if writer is not None and writer.queue_elsewhere:
            return
        if not known(workload.names_queue, "its labels are known") and not workload.pod_group:
            yield place.refuse(
                f"has schedulerName: {SCHEDULER} but no label {QUEUE_LABEL}",
                "write the label with a leaf queue, or drop schedulerName to use the default"
                " scheduler",
            )
        return
    if scheduler is None and workload.names_queue is False and writer and writer.scheduler:
        return  # its operator writes it; workload-leaf-queue says that no queue is named
    fractions = [key for key in (FRACTION, MEMORY) if key in pairs(workload.annotations)]
    reasons = [f"the label {QUEUE_LABEL}"] if workload.names_queue is True else []
    reasons += [f"the annotation {key}" for key in fractions]
    if reasons:
        has = f"schedulerName: {known(scheduler, 'its schedulerName is known')}"
        yield place.refuse(
            f"has {listed(reasons, 'and')} but {has if scheduler else 'no schedulerName'}, so KAI"
            " never sees it and they are ignored",
            f"write schedulerName: {SCHEDULER}",
        )
    known(workload.names_queue, "its labels are known")
    known(workload.annotations, "its annotations are known")


@mandatory("workload-known-keys", "high", WORKLOADS)
def workload_known_keys(cluster: Cluster, workload: PodTemplate, place: Place) -> Findings:
    """Labels and annotations that KAI reads, in the place where it reads them, as strings.

    KAI ignores keys that it does not know: a pod with kai.scheduler/gpu-fraction runs without a
    GPU, or on one that nobody accounts. Values of labels and annotations are strings.
    """
    # The commercial product that KAI came from has a scheduler and keys of its own.
    if isinstance(workload.scheduler, str) and workload.scheduler.startswith("runai"):
        return
    wrong = (
        *_keys(workload.labels, "label"),
        *_keys(workload.annotations, "annotation"),
        *_keys(workload.owner_labels, "label"),
        *_resources(workload),
    )
    for cause, fix in dict.fromkeys(wrong):
        yield place.refuse(cause, fix)
    if UNKNOWN in (workload.labels, workload.annotations, workload.owner_labels):
        yield place.undecided("all its labels and annotations are known")


def _resources(workload: PodTemplate) -> Iterator[tuple[str, str]]:
    """A share of a GPU as a resource of a container, which no node has."""
    for container in () if workload.containers is UNKNOWN else workload.containers:
        for key in (*pairs(container.limits), *pairs(container.requests)):
            if "/" in key and (right := right_key(key)) not in (None, "", key):
                where = f"in container {called(container.name)}, which no node has"
                yield f"asks for the resource {key} {where}", f"write the annotation {right}"


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


def _placed(cluster: Cluster) -> Iterable[tuple[object, Place]]:
    """Everything in a namespace; what Pulumi's Chart makes, by the type in its URN, as one."""
    of_chart = []
    for item, place in (*WORKLOADS(cluster), *_objects(cluster)):
        if ":Chart$" not in "".join(place.path.split("::", 3)[2:3]):
            yield item, place
        elif item.namespace == KAI_NAMESPACE:
            of_chart.append(place.path)
    yield from ((kai, of_kai(kai, cluster, "namespace")) for kai in cluster.kai)
    if of_chart:
        yield None, Place("Chart", f"in {cluster.name}", min(of_chart))


def _objects(cluster: Cluster) -> Iterable[tuple[ManagedObject, Place]]:
    for thing in cluster.objects:
        yield thing, Place(thing.kind, f"{called(thing.name)} in {cluster.name}", thing.path)


@mandatory("namespace-reserved", "critical", _placed)
def namespace_reserved(cluster: Cluster, item: object, place: Place) -> Findings:
    """Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs.

    KAI's admission lets pods in these namespaces through unseen, and removing KAI deletes
    every Deployment in its own.
    """
    match item:
        case PodTemplate():
            namespace = known(item.namespace, "its namespace is known")
            scaling = namespace == SCALING_NAMESPACE and "shared-gpu-pod-name" in pairs(item.labels)
            if namespace in RESERVED and not scaling:
                yield place.refuse(
                    f"runs in {namespace}, which is reserved for the platform",
                    "write a namespace of the team's own, for example team-a",
                )
        case ManagedObject():
            if item.kind == "Release":
                known(item.namespace, "its namespace is known")
            if item.namespace == KAI_NAMESPACE and item.kind not in _KAI_SUPPORT:
                what = f"the chart {item.chart}" if item.chart else item.kind
                yield place.refuse(
                    f"puts {what} in {KAI_NAMESPACE}, where removing KAI deletes every Deployment",
                    "write another namespace",
                )
        case Kai() if known(item.namespace, "its namespace is known") != KAI_NAMESPACE:
            yield place.refuse(
                f"is installed in {item.namespace or 'default'}, but its clean-up works in"
                f" {KAI_NAMESPACE} only",
                f"write namespace: {KAI_NAMESPACE}",
            )
        case None:
            yield place.refuse(
                f"makes the objects of a chart in {KAI_NAMESPACE} without Helm. KAI's charts need"
                " their Helm hooks, which a Chart of Pulumi's leaves out or makes at the wrong"
                " moment",
                "declare KAI by kubernetes:helm.sh/v3:Release, with the same chart, version and"
                " values; another chart goes into another namespace",
            )
