"""Checks of pods: why they wait, keys that KAI ignores, and pods that were refused.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object. What a tenant causes in its vCluster has the level `info`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import GPU_CHARTS
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL, right_field, right_key
from kai_fleet.values import known_or
from kai_fleet.wording import listed, number_with_noun
from kai_fleet_cli.doctor.faults import NAME, NAMES, NAMESPACE, Affected, Fault, Faults
from kai_fleet_cli.doctor.messages import explain
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_policies.finding import Fix
from kai_fleet_policies.model.cluster import DeclaredTeam
from kai_usage.creators import lacks_pods
from kai_usage.keys import POD_GROUP, QUEUE_LABEL
from kai_usage.limits import exceeded_limits
from kai_usage.objects import has_labels, labels_of
from kai_usage.pods import Pod
from kai_usage.times import seconds_since

Reasons: TypeAlias = Iterator[Fault | None]  # why a pod waits: the first that is not None counts
_PATIENCE_SECONDS: Final = 60.0  # a shorter wait is normal
_SKIP_PODGROUPER: Final = "kai.scheduler/skip-podgrouper"
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")
_LATELY_SECONDS: Final = 900.0  # what was repaired is not reported for longer
# Reasons of events about what creates pods. The last two are KubeRay's, about a RayCluster.
_REFUSED: Final = (
    "FailedCreate",
    "SyncError",
    "UnexpectedAdmissionError",
    "FailedToCreateHeadPod",
    "FailedToCreateWorkerPod",
)


def waiting(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield why each of the users' pods waits.

    Raises the first UnreadError after the last pod, so that what is known of the others is given.
    """
    first_error: UnreadError | None = None
    for pod in snapshot.pods(cluster):
        try:
            reason = why(pod, cluster, snapshot)
        except UnreadError as error:
            first_error = first_error or error
            continue
        if reason is not None:
            yield reason
    if first_error is not None:
        raise first_error


def why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return the first reason why a pod does not run.

    None if it is not Pending, is being deleted, is in a namespace of RESERVED, or if there is no
    reason yet. Raises UnreadError if a list that decides was not read, and one of MALFORMED.

    Args:
        pod: The pod.
        cluster: The cluster that the pod is in.
        snapshot: The snapshot that has the cluster.
    """
    use = cluster.pod_uses.get(pod.namespaced_name)
    if use is None or use.phase != "Pending" or use.is_being_deleted:
        return None
    reasons = _not_started(pod, cluster) if use.node else _not_placed(pod, use, cluster, snapshot)
    return next(filter(None, reasons), None)


def _not_started(pod: KubeObject, cluster: Cluster) -> Reasons:
    """Yield reasons why the containers of a pod on a node do not start. Only the first counts.

    What a container waits for comes before events. An image that cannot be pulled, and a container
    that cannot be created, are the tenant's fault if no table knows the message.
    """
    subject = _subject(pod, cluster)
    for message in pod.waiting:
        yield explain(subject, [message], "pending")
        if message.startswith(_CANNOT_START):
            yield subject.tenants_fault(
                f"its container does not start: {message}", *_describe(cluster)
            )
    yield explain(subject, cluster.messages_of(pod), "pending")


def _subject(pod: KubeObject | Pod, cluster: Cluster) -> Affected:
    return Affected(cluster, "pod", pod.namespaced_name)


def _describe(cluster: Cluster) -> Fix:
    return ("look with: ", cluster.command(f"-n {NAMESPACE} describe pod {NAME}"))


def _not_placed(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    snapshot: Snapshot,
) -> Reasons:
    """Yield reasons why a pod has no node, None for those that do not apply. Only the first counts.

    What objects say comes before what messages mean: a failed binding, closed scheduling gates, the
    queue and its limits, then labels and GPUs that no node has. If nothing is known a minute after
    the pod's creation the last reason says so.
    """
    subject = _subject(pod, cluster)
    scheduling = snapshot.scheduling_cluster(cluster)
    if _is_bound_in_name_only(pod, cluster):
        yield subject.broken(
            "KAI's binder reports that it bound it, and it has no node: binding failed",
            cluster.command(f"-n {NAMESPACE} delete pod {NAMES}"),
            ", so that it is placed anew; the reason is in ",
            cluster.command("-n kai-scheduler logs deployment/binder"),
            check="false-success",
        )
    if gates := pod.spec.get("schedulingGates"):
        gate_names = ", ".join(str(gate.get("name")) for gate in gates)
        yield subject.tenants_fault(
            f"its scheduling gates are closed: {gate_names}", "whoever set them opens them"
        )
    if use.by_kai:
        yield from _by_queue(pod, use, cluster, snapshot)
        yield from _by_limits(use, cluster, snapshot)
    elif scheduling.kai is not None and QUEUE_LABEL in pod.labels:
        yield subject.tenants_fault(
            "has the label kai.scheduler/queue and another scheduler: KAI never sees it",
            "write schedulerName: kai-scheduler, or drop the label",
            check="workload-scheduler",
        )
    if labels := _labels_of_no_node(pod, cluster, snapshot):
        yield subject.tenants_fault(
            f"no node has the labels that it asks for: {labels}",
            "write a nodeSelector that nodes have",
        )
    yield _too_large(use, cluster, snapshot)
    around = snapshot.around(pod, cluster)
    yield explain(subject, cluster.messages_of(pod), "pending", around)
    if cluster.age_seconds(pod) > _PATIENCE_SECONDS:
        yield _unexplained(pod, use, cluster)


def _is_bound_in_name_only(pod: KubeObject, cluster: Cluster) -> bool:
    """Whether KAI says that it bound a pod, by an event or a condition; the pod has no node."""
    bound = any(event.get("reason") == "Bound" for event in cluster.events_of(pod))
    return pod.is_true("PodBound") or bound


def _too_large(use: Pod, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return a fault for a pod that asks for more GPUs than any Ready node has; else None.

    Empty nodes decide, as `_with_real_nodes` gives them. MIG devices do not count.
    """
    gpus = use.gpu.devices_on_node
    most = _with_real_nodes(cluster, snapshot).most_gpus
    if gpus <= most:
        return None
    return _subject(use, cluster).tenants_fault(
        f"it asks for {gpus:g} GPUs, and no Ready node has more than {most:g}: it never runs",
        f"ask for at most {most:g} in one pod, or add larger nodes to the pool",
        key="never",
    )


def _unexplained(pod: KubeObject, use: Pod, cluster: Cluster) -> Fault:
    """Return the fault of a pod that waits for no known reason.

    The pod-grouper is the cause if the pod is KAI's and has no PodGroup, unless an annotation asks
    for none. Else the fault quotes the scheduler.
    """
    subject = _subject(pod, cluster)
    grouped = pod.annotations.get(POD_GROUP) or _SKIP_PODGROUPER in pod.annotations
    if use.by_kai and cluster.kai is not None and not grouped:
        podgrouper = next(name for name in cluster.kai.deployments if "grouper" in name)
        return subject.broken(
            "KAI's pod-grouper has made no PodGroup for it, and without one it is not scheduled",
            "look with: ",
            cluster.command(f"-n kai-scheduler logs deployment/{podgrouper}"),
            check="pod-groups",
        )
    text = pod.unscheduled or "no event, no condition"
    return subject.broken(
        f"it has no node, and nothing known gives a reason: {text}", *_describe(cluster)
    )


def _labels_of_no_node(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> str:
    """Return the node selector of a pod if no node has its labels; else "".

    The nodes are those of `_with_real_nodes`. Also "" if there are no nodes at all, or an
    autoscaler may add one.
    """
    selector = pod.spec.get("nodeSelector") or {}
    if not selector:
        return ""
    team = snapshot.team_of(cluster)
    if team is not None and snapshot.settings.team_or_grant(team.name).autoscaled:
        return ""
    nodes = _with_real_nodes(cluster, snapshot).all("nodes")
    if not nodes or any(has_labels(node, selector) for node in nodes):
        return ""
    return ", ".join(f"{key}={value}" for key, value in selector.items())


def _with_real_nodes(cluster: Cluster, snapshot: Snapshot) -> Cluster:
    """The host for a vCluster without a scheduler of its own, whose nodes are made up."""
    team = snapshot.team_of(cluster)
    sees_real_nodes = team is None or team.mode == "virtual"
    return cluster if sees_real_nodes else snapshot.host


def _by_queue(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    snapshot: Snapshot,
) -> Reasons:
    """Yield reasons that a pod's queue gives, by priority. Raises UnreadError without Queues.

    First that the queue takes no pods, then that no scheduler of KAI runs, that the pod's
    RuntimeClass is absent, and that pod and queue are in different shards.
    """
    subject = _subject(pod, cluster)
    scheduling = snapshot.scheduling_cluster(cluster)
    scheduling.require("queues")  # without them no reason is certain
    if scheduling.kai is not None:
        yield _wrong_queue(use, cluster, snapshot)
    if not any(deployment.rolled_out for deployment in scheduling.schedulers):
        yield _no_scheduler(subject, scheduling)
    runtime_class = pod.spec.get("runtimeClassName")
    if runtime_class and cluster.find("runtimeclasses", runtime_class) is None:
        message = f'RuntimeClass "{runtime_class}" not found'
        yield explain(subject, [message], "pending")
    yield _wrong_shard(pod, use, cluster, scheduling)


def _no_scheduler(subject: Affected, scheduling: Cluster) -> Fault:
    """Return the fault of a KAI pod for which no scheduler runs.

    It is the tenant's if the cluster has no KAI, declared or running, of the release table.
    """
    if scheduling.kai is None:
        return subject.tenants_fault(
            "it asks for KAI, and no KAI schedules in this cluster",
            "drop schedulerName, or give the team a KAI: scheduler.mode: virtual",
        )
    return subject.broken(
        "no scheduler of KAI serves here",
        f"repair KAI first: kai-parts of {scheduling.name} names what is wrong with it",
    )


def _wrong_queue(use: Pod, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return a fault if a pod's queue takes no pods of its cluster.

    In this order: the pod names none, an unknown one, one that is declared and absent, one with
    children, or in mode host another one than its team's. All but the third are the tenant's.
    """
    scheduling = snapshot.scheduling_cluster(cluster)
    tree = scheduling.tree
    team = snapshot.team_of(cluster)
    team_queue = team.queue if team is not None and team.mode == "host" else None
    right_queues = team_queue or listed(tree.leaves) or "a leaf queue, declared first"
    queue = use.queue
    if queue is None:
        cause = "asks for KAI and names no queue"
        # With a label without a value KAI looks for a queue without a name.
        if QUEUE_LABEL not in labels_of(use.item):
            cause += ": KAI would look for one called default-queue"
    elif queue not in tree.by_name:
        cause = f"names queue {queue}, which is not there and not declared"
    elif scheduling.find("queues", queue) is None:
        return _subject(use, cluster).broken(
            f"its queue {queue} is declared, and is not there", scheduling.update_command
        )
    elif not tree.is_leaf(queue):
        cause = f"names queue {queue}, which has children and so takes no pods"
        right_queues = listed(tree.leaves_below(queue))
    elif team_queue not in (None, queue):
        cause = f"names queue {queue}, but the queue of its team is {team_queue}"
    else:
        return None
    return _subject(use, cluster).tenants_fault(
        cause,
        f"write the label kai.scheduler/queue: {right_queues}",
        check="workload-leaf-queue",
    )


def _wrong_shard(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    scheduling: Cluster,
) -> Fault | None:
    """Return a fault if a pod's shard label is not that of its queue, which its PodGroup names.

    A shard's scheduler sees the pods with its label, not those that only name its queue. That of
    the default shard sees the pods without the label: none sees those with the value `default`.
    None as well if the queue is not there.
    """
    queue = scheduling.find("queues", use.queue or "")
    if queue is None:
        return None
    queue_shard = queue.labels.get(NODE_POOL)
    pod_shard = pod.labels.get(NODE_POOL)
    if queue_shard == pod_shard:
        return None
    fix = f"drop the label {NODE_POOL}"
    if queue_shard:
        fix = f"write the label {NODE_POOL}: {queue_shard}"
    if queue_shard == DEFAULT_SHARD:
        cause = (
            f"its queue {use.queue} has the label {NODE_POOL}: {DEFAULT_SHARD}, and only queues"
            " without the label are of the default shard"
        )
        fix = f"take the label {NODE_POOL} off the queue and off the pod"
    elif pod_shard == DEFAULT_SHARD:
        cause = (
            f"has the label {NODE_POOL}: {DEFAULT_SHARD}, and only pods without the label are of"
            " the default shard: no scheduler places it"
        )
    else:
        cause = (
            f"its queue {use.queue} is of shard {queue_shard or DEFAULT_SHARD}, and the pod of"
            f" {pod_shard or DEFAULT_SHARD}: neither scheduler places it"
        )
    return _subject(pod, cluster).tenants_fault(cause, fix)


def _by_limits(use: Pod, cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield limits of GPUs of the pod's queue and its ancestors: first all that are too low for the
    pod alone, then all that are reached now. Limits of CPU and memory do not count.
    """
    scheduling = snapshot.scheduling_cluster(cluster)
    team = snapshot.team_of(cluster)
    for exceeded in exceeded_limits(use, scheduling.usage.queues, ["gpu"]):
        queue = exceeded.queue.name
        asked = number_with_noun(exceeded.requested, "GPU")
        most = f"{exceeded.limit:g}"
        if exceeded.alone:
            key = "never"
            holds = f"may hold at most {most}: it never runs"
            fix = f"ask for at most {most}, or "
        else:
            key = "full"
            holds = f"holds {exceeded.in_use:g} of at most {most}"
            fix = "wait for a pod of that queue to end, ask for less, or "
        yield _subject(use, cluster).tenants_fault(
            f"it asks for {asked}, and queue {queue} {holds}",
            fix,
            *_raise_limit(scheduling, team, queue, exceeded.needed),
            key=f"{key} {queue}",
        )


def _raise_limit(
    scheduling: Cluster,
    team: DeclaredTeam | None,
    name: str,
    gpus: float,
) -> Fix:
    """Return how to raise a queue's limit to an amount of GPUs.

    For a queue that the stack does not declare a command with the amount; for a top queue whose
    limit is the team's GPUs the key of these; else the name of the queue and the key path of the
    section of queues. A team's own stack does not know all queues of the host, so it names the
    section for the others, too.

    Args:
        scheduling: The cluster that has the queue.
        team: The team whose pod waits; None for a pod of the host.
        name: The queue's name.
        gpus: The amount, which only the command has.
    """
    declared = scheduling.desired
    queue = declared.tree.by_name.get(name)
    if queue is None and declared.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {gpus:g}}}}}}}}}'
        command = scheduling.command(f"patch queue {name} --type merge -p '{patch}'")
        return ("raise its limit: ", command)
    share = known_or(queue.shares, {}).get("gpu") if queue is not None else None
    if queue is not None and team is not None and not queue.parent and share is not None:
        shard = queue.shard or DEFAULT_SHARD
        if share.limit == declared.pools.get(shard, team.gpus):
            pool = f".{shard}" if team.pools else ""
            return (f"raise {team.gpus_path}{pool}",)
    return (f"raise gpu.limit of {name} at {declared.queues_key}",)


def wrong_keys(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield labels and annotations of pods that look like KAI's, and that KAI does not read.

    Nothing if no KAI schedules the cluster's pods, its own or in mode host the host's. Nothing for
    pods that have ended.
    """
    if snapshot.scheduling_cluster(cluster).kai is None:
        return
    for pod in snapshot.pods(cluster):
        if pod.has_ended:
            continue
        yield from _wrong_keys_among(cluster, pod, "label", pod.labels)
        yield from _wrong_keys_among(cluster, pod, "annotation", pod.annotations)


def _wrong_keys_among(
    cluster: Cluster,
    pod: KubeObject,
    field: str,
    keys: Iterable[str],
) -> Faults:
    """Yield the wrong keys of one field of a pod: `label` or `annotation`."""
    for key in keys:
        meant = right_key(key)  # "": KAI has no such key
        if meant in (None, key):
            continue
        yield _subject(pod, cluster).tenants_fault(
            f"has the {field} {key}, which no version of KAI reads",
            f"write the {right_field(meant, field)} {meant}" if meant else "drop it",
        )


def without_group(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield pods of KAI whose PodGroup does not exist any more: KAI does not count them.

    Not those that have ended.
    """
    for pod in cluster.all("pods"):
        use = cluster.pod_uses.get(pod.namespaced_name)
        group = pod.annotations.get(POD_GROUP)
        if not group or cluster.find("podgroups", group, pod.namespace) is not None:
            continue
        if use is not None and use.by_kai:
            yield _subject(pod, cluster).broken(
                "its PodGroup is gone: KAI does not count the pod any more",
                cluster.command(f"-n {NAMESPACE} delete pod {NAMES}"),
                ", so that it is made again",
                check="pod-groups",
            )


class _Involved(NamedTuple):
    """An object that a message is about."""

    kind: str
    namespace: str
    name: str


def refused(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield what API servers or nodes refused lately, if a table knows the message.

    A pod that admission denies does not exist: its owner has an event, or a ReplicaSet a condition.
    Of one object the last message counts: a pod's before an event's before a ReplicaSet's. What is
    in the namespaces of GPU stacks, or in skipped ones, is left out.
    """
    messages = {
        **_failures_of_replica_sets(cluster),
        **_refusals_in_events(cluster),
        **_refused_pods(cluster, snapshot),
    }
    skipped = GPU_CHARTS | snapshot.skipped_namespaces(cluster)
    for about, message in messages.items():
        name = f"{about.namespace}/{about.name}"
        reason = explain(Affected(cluster, about.kind, name), [message])
        if reason is not None and about.namespace not in skipped:
            yield reason


def _failures_of_replica_sets(cluster: Cluster) -> dict[_Involved, str]:
    """Return the messages of ReplicaSets that could not create pods."""
    messages = dict[_Involved, str]()
    for owner in cluster.all("replicasets"):
        failure = owner.condition("ReplicaFailure")
        if failure.get("status") == "True":
            about = _Involved("ReplicaSet", owner.namespace, owner.name)
            messages[about] = str(failure.get("message") or "")
    return messages


def _refusals_in_events(cluster: Cluster) -> dict[_Involved, str]:
    """Return the last message in an event about each object that still lacks its pods."""
    messages = dict[_Involved, str]()
    oldest_first = sorted(cluster.all("events"), key=lambda event: event.last_seen)
    for event in oldest_first:
        involved: Mapping[str, Any] = event.get("involvedObject") or {}
        about = _Involved(
            kind=str(involved.get("kind", "")),
            namespace=str(involved.get("namespace", "")),
            name=str(involved.get("name", "")),
        )
        if event.get("reason") in _REFUSED and not _is_over(cluster, about, event):
            messages[about] = str(event.get("message") or "")
    return messages


def _refused_pods(cluster: Cluster, snapshot: Snapshot) -> dict[_Involved, str]:
    """Return the messages of pods that nodes refused and that are at most 15 minutes old."""
    messages = dict[_Involved, str]()
    for pod in snapshot.pods(cluster):
        reason = str(pod.status.get("reason") or "")
        if pod.phase != "Failed" or reason not in _REFUSED:
            continue
        if cluster.age_seconds(pod) <= _LATELY_SECONDS:
            about = _Involved("Pod", pod.namespace, pod.name)
            messages[about] = f"{reason}: {pod.status.get('message', '')}"
    return messages


def _is_over(cluster: Cluster, about: _Involved, event: KubeObject) -> bool:
    """Whether an event does not matter any more: its object is gone, has its pods, or ended.

    For pods, and for a kind that is not read or not served, it is over 15 minutes after the event.
    """
    late = seconds_since(event.last_seen, cluster.now) > _LATELY_SECONDS
    resource = f"{about.kind.lower()}s"
    if not cluster.asked(resource) or not cluster.serves(resource):
        return late
    owner = cluster.find(resource, about.name, about.namespace)
    if owner is None:
        return True
    if about.kind == "Pod":
        return late or owner.is_true("Ready") or owner.phase == "Succeeded"
    return not lacks_pods(owner)
