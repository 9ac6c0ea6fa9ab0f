"""Checks of pods: why they wait, keys that KAI ignores, and pods that were refused."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from kai_fleet.cluster.kube.objects import KubeObject, in_pool
from kai_fleet.releases import GPU_CHARTS
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL, right_key
from kai_fleet.values import known_or
from kai_fleet.wording import counted, listed
from kai_fleet_cli.doctor.causes import Fault, Faults, explain, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_policies.model.cluster import DeclaredTeam
from kai_usage.creators import lacks_pods
from kai_usage.keys import POD_GROUP, QUEUE_LABEL
from kai_usage.limits import exceeded_limits
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
    """Return the first reason why a pod does not run; None if it runs, or there is no reason yet.

    Raises UnreadError if a list that decides was not read.
    """
    use = cluster.pod_uses.get(pod.namespaced_name)
    if use is None or use.phase != "Pending" or use.ending:
        return None
    if use.node:
        return _first(_not_started(pod, cluster))
    return _first(_not_placed(pod, use, cluster, snapshot))


def _first(reasons: Reasons) -> Fault | None:
    return next((reason for reason in reasons if reason is not None), None)


def _not_started(pod: KubeObject, cluster: Cluster) -> Reasons:
    """Yield reasons why the containers of a pod on a node do not start. Only the first counts."""
    name = pod.namespaced_name
    for message in pod.waiting:
        yield explain(cluster, "pod", name, [message], "pending")
        if message.startswith(_CANNOT_START):
            yield fault("pod-cannot-start", cluster, name, text=message)
    yield explain(cluster, "pod", name, cluster.messages_of(pod), "pending")


def _not_placed(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    snapshot: Snapshot,
) -> Reasons:
    """Yield reasons why a pod has no node. Only the first counts: the order is their priority.

    First what no scheduler can ever satisfy, then what messages mean. If nothing is known after a
    minute the last reason says so.
    """
    name = pod.namespaced_name
    scheduling = snapshot.scheduling_cluster(cluster)
    if _is_bound_in_name_only(pod, cluster):
        yield fault("pod-bound-in-name-only", cluster, name)
    if gates := pod.spec.get("schedulingGates"):
        gate_names = ", ".join(str(gate.get("name")) for gate in gates)
        yield fault("pod-gated", cluster, name, gates=gate_names)
    if use.by_kai:
        yield from _by_queue(pod, use, cluster, snapshot)
        yield from _by_limits(use, cluster, snapshot)
    elif scheduling.kai is not None and QUEUE_LABEL in pod.labels:
        yield fault("pod-of-another-scheduler", cluster, name)
    if labels := _labels_of_no_node(pod, cluster, snapshot):
        yield fault("pod-without-node", cluster, name, labels=labels)
    yield _too_large(use, cluster)
    around = snapshot.around(pod, cluster)
    yield explain(cluster, "pod", name, cluster.messages_of(pod), "pending", around)
    if cluster.age_seconds(pod) > _PATIENCE_SECONDS:
        yield _unexplained(pod, use, cluster)


def _is_bound_in_name_only(pod: KubeObject, cluster: Cluster) -> bool:
    """Whether KAI says that it bound a pod, by an event or a condition; the pod has no node."""
    bound = any(event.get("reason") == "Bound" for event in cluster.events_of(pod))
    return pod.is_true("PodBound") or bound


def _too_large(use: Pod, cluster: Cluster) -> Fault | None:
    """Return a fault for a pod that asks for more GPUs than any node has, even an empty one."""
    gpus = use.gpu.devices_on_node
    most = cluster.most_gpus
    if gpus > most:
        values = {"asked": f"{gpus:g}", "most": f"{most:g}"}
        return fault("pod-too-large", cluster, use.namespaced_name, **values)
    return None


def _unexplained(pod: KubeObject, use: Pod, cluster: Cluster) -> Fault:
    """Return the fault of a pod that waits for no reason: KAI's podgrouper ignores it, or other."""
    name = pod.namespaced_name
    grouped = pod.annotations.get(POD_GROUP) or _SKIP_PODGROUPER in pod.annotations
    if use.by_kai and cluster.kai is not None and not grouped:
        podgrouper = next(name for name in cluster.kai.deployments if "grouper" in name)
        return fault("pod-ungrouped", cluster, name, grouper=podgrouper)
    text = pod.unscheduled or "no event, no condition"
    return fault("pod-unexplained", cluster, name, text=text)


def _labels_of_no_node(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> str:
    """Return the node selector of a pod if no node has its labels; else "".

    A vCluster without a scheduler of its own shows made-up nodes: there the host's nodes decide.
    Also "" if there are no nodes at all, or an autoscaler may add one.
    """
    selector = pod.spec.get("nodeSelector") or {}
    if not selector:
        return ""
    team = snapshot.team_of(cluster)
    if team is not None and snapshot.settings.own_of(team.name).autoscaled:
        return ""
    sees_real_nodes = team is None or team.mode == "virtual"
    nodes = (cluster if sees_real_nodes else snapshot.host).all("nodes")
    if not nodes or any(in_pool(node.labels, selector) for node in nodes):
        return ""
    return ", ".join(f"{key}={value}" for key, value in selector.items())


def _by_queue(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    snapshot: Snapshot,
) -> Reasons:
    """Yield reasons that a pod's queue gives, by priority.

    First that the queue takes no pods, then that no scheduler of KAI runs, that the pod's
    RuntimeClass is absent, and that pod and queue are in different shards.
    """
    name = pod.namespaced_name
    scheduling = snapshot.scheduling_cluster(cluster)
    scheduling.require("queues")  # without them no reason is certain
    if scheduling.kai is not None:
        yield _wrong_queue(use, cluster, snapshot)
    if not any(deployment.rolled_out for deployment in scheduling.schedulers):
        cause_id = "pod-without-scheduler" if scheduling.kai else "pod-without-kai"
        yield fault(
            cause_id,
            cluster,
            name,
            queue=use.queue,
            of=scheduling.name,
        )
    runtime_class = pod.spec.get("runtimeClassName")
    if runtime_class and cluster.named("runtimeclasses", runtime_class) is None:
        message = f'RuntimeClass "{runtime_class}" not found'
        yield explain(cluster, "pod", name, [message], "pending")
    yield _wrong_shard(pod, use, cluster, scheduling)


def _wrong_queue(use: Pod, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Return a fault if a pod's queue takes no pods of its cluster.

    In this order: the pod names none, an unknown one, one that is declared and absent, one with
    children, or in mode host another one than its team's.
    """
    scheduling = snapshot.scheduling_cluster(cluster)
    tree = scheduling.tree
    team = snapshot.team_of(cluster)
    team_queue = team.queue if team is not None and team.mode == "host" else None
    write = team_queue or listed(tree.leaves) or "a leaf queue, declared first"
    queue = use.queue
    queue_fault = partial(fault, cluster=cluster, name=use.namespaced_name, queue=queue)
    if queue is None:
        return queue_fault("pod-without-queue", write=write)
    if queue not in tree.by_name:
        return queue_fault("pod-of-absent-queue", write=write)
    if scheduling.named("queues", queue) is None:
        return queue_fault("pod-queue-absent", update=scheduling.update)
    if not tree.is_leaf(queue):
        return queue_fault("pod-of-parent-queue", write=listed(tree.leaves_below(queue)))
    if team_queue not in (None, queue):
        return queue_fault("pod-of-another-queue", write=team_queue)
    return None


def _wrong_shard(
    pod: KubeObject,
    use: Pod,
    cluster: Cluster,
    scheduling: Cluster,
) -> Fault | None:
    """Return a fault if a pod's shard label is not its queue's.

    A shard's scheduler sees the pods with its label, not those that only name its queue.
    """
    queue = scheduling.named("queues", pod.labels.get(QUEUE_LABEL, ""))
    if queue is None:
        return None
    queue_shard = queue.labels.get(NODE_POOL)
    pod_shard = pod.labels.get(NODE_POOL)
    if queue_shard == pod_shard:
        return None
    fix = f"drop the label {NODE_POOL}"
    if queue_shard:
        fix = f"write the label {NODE_POOL}: {queue_shard}"
    return fault(
        "pod-of-another-shard",
        cluster,
        pod.namespaced_name,
        queue=use.queue,
        fix=fix,
        shard=queue_shard or DEFAULT_SHARD,
        has=pod_shard or DEFAULT_SHARD,
    )


def _by_limits(use: Pod, cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield limits of the pod's queue and its ancestors: first all that are too low for the pod
    alone, then all that are reached now.
    """
    scheduling = snapshot.scheduling_cluster(cluster)
    team = snapshot.team_of(cluster)
    for exceeded in exceeded_limits(use, scheduling.usage.queues, ["gpu"]):
        queue = exceeded.queue.name
        yield fault(
            "pod-over-limit" if exceeded.alone else "pod-queue-full",
            cluster,
            use.namespaced_name,
            held=f"{exceeded.in_use:g}",
            most=f"{exceeded.limit:g}",
            queue=queue,
            more=_raise_limit(scheduling, team, queue, exceeded.needed),
            asked=counted(exceeded.requested, "GPU"),
        )


def _raise_limit(
    scheduling: Cluster,
    team: DeclaredTeam | None,
    name: str,
    gpus: float,
) -> str:
    """Return how to raise a queue's limit to an amount of GPUs.

    A command for a queue that the stack does not declare; the team's GPUs if its limit is theirs;
    else the key that declares the queue.
    """
    declared = scheduling.desired
    queue = declared.tree.by_name.get(name)
    if queue is None and declared.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {gpus:g}}}}}}}}}'
        command = f"{scheduling.kubectl} patch queue {name} --type merge -p '{patch}'"
        return f"raise its limit: `{command}`"
    share = known_or(queue.shares, {}).get("gpu") if queue is not None else None
    if queue is not None and team is not None and not queue.parent and share is not None:
        shard = queue.shard or DEFAULT_SHARD
        if share.limit == declared.pools.get(shard, team.gpus):
            pool = f".{shard}" if team.pools else ""
            return f"raise {team.gpus_path}{pool}"
    return f"raise gpu.limit of {name} at {declared.queues_key}"


def wrong_keys(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield labels and annotations that look like KAI's, and that KAI does not read.

    Nothing for a cluster without KAI.
    """
    if snapshot.scheduling_cluster(cluster).kai is None:
        return
    for pod in snapshot.pods(cluster):
        if pod.ended:
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
        right_field = "label" if meant == QUEUE_LABEL else "annotation"
        yield fault(
            "pod-with-wrong-key",
            cluster,
            pod.namespaced_name,
            has=f"the {field} {key}",
            write=f"write the {right_field} {meant}" if meant else "drop it",
        )


def without_group(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield pods of KAI whose PodGroup does not exist any more: KAI does not count them."""
    for pod in cluster.all("pods"):
        use = cluster.pod_uses.get(pod.namespaced_name)
        group = pod.annotations.get(POD_GROUP)
        if not group or cluster.named("podgroups", group, pod.namespace) is not None:
            continue
        if use is not None and use.by_kai:
            yield fault("pod-group-gone", cluster, pod.namespaced_name)


class _Subject(NamedTuple):
    """An object that a message is about."""

    kind: str
    namespace: str
    name: str


def refused(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield what API servers or nodes refused lately, if a table knows the message.

    A pod that admission denies does not exist: its owner has an event, or a ReplicaSet a condition.
    Of one object the last message counts: a pod's before an event's before a ReplicaSet's.
    """
    messages = {
        **_failures_of_replica_sets(cluster),
        **_refusals_in_events(cluster),
        **_refused_pods(cluster, snapshot),
    }
    skipped = GPU_CHARTS | snapshot.skipped_namespaces(cluster)
    for subject, message in messages.items():
        name = f"{subject.namespace}/{subject.name}"
        reason = explain(cluster, subject.kind, name, [message])
        if reason is not None and subject.namespace not in skipped:
            yield reason


def _failures_of_replica_sets(cluster: Cluster) -> dict[_Subject, str]:
    messages = dict[_Subject, str]()
    for owner in cluster.all("replicasets"):
        failure = owner.condition("ReplicaFailure")
        if failure.get("status") == "True":
            subject = _Subject("ReplicaSet", owner.namespace, owner.name)
            messages[subject] = str(failure.get("message") or "")
    return messages


def _refusals_in_events(cluster: Cluster) -> dict[_Subject, str]:
    """Return the last message about each object that still lacks its pods."""
    messages = dict[_Subject, str]()
    oldest_first = sorted(cluster.all("events"), key=lambda event: event.last_seen)
    for event in oldest_first:
        involved: Mapping[str, Any] = event.get("involvedObject") or {}
        subject = _Subject(
            kind=str(involved.get("kind", "")),
            namespace=str(involved.get("namespace", "")),
            name=str(involved.get("name", "")),
        )
        if event.get("reason") in _REFUSED and not _is_over(cluster, subject, event):
            messages[subject] = str(event.get("message") or "")
    return messages


def _refused_pods(cluster: Cluster, snapshot: Snapshot) -> dict[_Subject, str]:
    """Return the messages of pods that nodes refused within the last 15 minutes."""
    messages = dict[_Subject, str]()
    for pod in snapshot.pods(cluster):
        reason = str(pod.status.get("reason") or "")
        if pod.phase != "Failed" or reason not in _REFUSED:
            continue
        if cluster.age_seconds(pod) <= _LATELY_SECONDS:
            subject = _Subject("Pod", pod.namespace, pod.name)
            messages[subject] = f"{reason}: {pod.status.get('message', '')}"
    return messages


def _is_over(cluster: Cluster, subject: _Subject, event: KubeObject) -> bool:
    """Whether an event does not matter any more: its object is gone, has its pods, or ended.

    For a kind that is not read, and for pods, it is over 15 minutes after the event.
    """
    late = seconds_since(event.last_seen, cluster.now) > _LATELY_SECONDS
    resource = f"{subject.kind.lower()}s"
    if not cluster.asked(resource) or not cluster.serves(resource):
        return late
    owner = cluster.named(resource, subject.name, subject.namespace)
    if owner is None:
        return True
    if subject.kind == "Pod":
        return late or owner.is_true("Ready") or owner.phase == "Succeeded"
    return not lacks_pods(owner)
