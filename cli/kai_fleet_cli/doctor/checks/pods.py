"""Checks of pods: why they wait, keys that KAI ignores, and pods that were refused.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object. What a tenant causes in its vCluster has the level `info`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import GPU_CHARTS
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL, right_field, right_key
from kai_fleet.values import known_or
from kai_fleet.wording import listed
from kai_fleet_cli.doctor.faults import NAMES, NAMESPACE, Affected, Fault, Faults
from kai_fleet_cli.doctor.messages import explain, fault_of
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_policies.finding import Command
from kai_fleet_policies.model.cluster import DeclaredTeam
from kai_usage.creators import lacks_pods
from kai_usage.keys import POD_GROUP, QUEUE_LABEL
from kai_usage.limits import ExceededLimit, exceeded_limits
from kai_usage.messages import Meaning
from kai_usage.objects import Involved, involved_in
from kai_usage.pods import Pod
from kai_usage.scheduling import meanings_of
from kai_usage.times import seconds_since
from kai_usage.waiting import (
    PATIENCE_SECONDS,
    absent_queue,
    closed_gates,
    no_group,
    no_such_node,
    not_for_kai,
    over_limit,
    reason,
    too_large,
)

# Why a pod waits: the first counts.
Reasons = Iterator[Fault | Meaning]
_Messages = Iterator[tuple[Involved, str]]  # and what each is about
# Closer names of the check than `pending`, by the row of `waiting.yaml`.
_CHECKS = {
    "no-queue": "workload-leaf-queue",
    "queue-absent": "workload-leaf-queue",
    "queue-no-leaf": "workload-leaf-queue",
    "not-for-kai": "workload-scheduler",
    "no-group": "pod-groups",
}
_CANNOT_START = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")
_LATELY_SECONDS = 900.0  # what was repaired is not reported for longer
# Reasons of events about what creates pods. The last two are KubeRay's, about a RayCluster.
_REFUSED = (
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
            fault = why(pod, cluster, snapshot)
        except UnreadError as error:
            first_error = first_error or error
            continue
        if fault is not None:
            yield fault
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
    waits = _Waiting(
        pod=pod,
        use=use,
        cluster=cluster,
        snapshot=snapshot,
        subject=_subject(pod, cluster),
        team=snapshot.team_of(cluster),
        scheduling=snapshot.scheduling_cluster(cluster),
    )
    reasons = waits.not_started() if use.node else waits.not_placed()
    first = next(reasons, None)
    if isinstance(first, Meaning):
        return fault_of(waits.subject, first, _CHECKS.get(first.row.name, "pending"))
    return first


def _subject(pod: KubeObject | Pod, cluster: Cluster) -> Affected:
    return Affected(cluster, "pod", pod.namespaced_name)


@dataclass(frozen=True)
class _Waiting:
    """A pod that waits, and what decides about it.

    Methods yield the reasons that apply; their order is priority. They raise UnreadError if a list
    that decides was not read.

    Attributes:
        subject: The pod, as faults name it.
        team: The team whose vCluster the pod is in; None on the host.
        scheduling: The cluster whose KAI places the pod.
    """

    pod: KubeObject
    use: Pod
    cluster: Cluster
    snapshot: Snapshot
    subject: Affected
    team: DeclaredTeam | None
    scheduling: Cluster

    def not_started(self) -> Reasons:
        """Yield reasons why the containers of a pod on a node do not start.

        What a container waits for comes before events. An image that cannot be pulled, and a
        container that cannot be created, are the tenant's fault if no table knows the message.
        """
        for message in self.pod.waiting:
            yield from meanings_of([message], "operator")
            if message.startswith(_CANNOT_START):
                yield reason("container", message=message)
        yield from meanings_of(self.cluster.messages_of(self.pod), "operator")

    def not_placed(self) -> Reasons:
        """Yield reasons why a pod has no node.

        What objects say comes before what messages mean: a failed binding, closed scheduling gates,
        the queue and its limits, then labels and GPUs that no node has. If nothing is known a
        minute after the pod's creation the last reason says so.
        """
        if self._is_bound_in_name_only():
            yield self.subject.broken(
                "KAI's binder reports that it bound it, and it has no node: binding failed",
                self.cluster.command(f"-n {NAMESPACE} delete pod {NAMES}"),
                ", so that it is placed anew; the reason is in ",
                self.cluster.command("-n kai-scheduler logs deployment/binder"),
                check="false-success",
            )
        yield from closed_gates(self.use)
        if self.use.by_kai:
            yield from self._by_queue()
            # Limits of CPU and memory do not count.
            for exceeded in exceeded_limits(self.use, self.scheduling.usage.queues, ["gpu"]):
                yield over_limit(exceeded, *self._raise_limit(exceeded))
        elif self.scheduling.kai is not None and QUEUE_LABEL in self.pod.labels:
            yield from not_for_kai(self.use)
        yield from self._by_nodes()
        around = self.snapshot.around(self.pod, self.cluster)
        yield from meanings_of(self.cluster.messages_of(self.pod), "operator", around)
        if self.cluster.age_seconds(self.pod) > PATIENCE_SECONDS:
            yield from self._unexplained()

    def _is_bound_in_name_only(self) -> bool:
        """Whether KAI says that it bound a pod, by an event or a condition; it has no node."""
        bound = any(event.get("reason") == "Bound" for event in self.cluster.events_of(self.pod))
        return self.pod.is_true("PodBound") or bound

    def _by_nodes(self) -> Reasons:
        """Yield that no node has the pod's labels, or that no Ready one has as many GPUs.

        The nodes of a vCluster without a scheduler of its own are made up: the host's decide. An
        autoscaler may add one with the labels.
        """
        team = self.team
        sees_real_nodes = team is None or team.mode == "virtual"
        cluster = self.cluster if sees_real_nodes else self.snapshot.host
        nodes = cluster.all("nodes")
        if team is None or not self.snapshot.settings.team_or_grant(team.name).autoscaled:
            yield from no_such_node(self.use, nodes)
        yield from too_large(self.use, cluster.most_gpus, "Ready node")

    def _unexplained(self) -> Reasons:
        """Yield that KAI's pod-grouper made no PodGroup, then that the reason is not known."""
        if self.cluster.kai is not None:
            deployments = self.cluster.kai.deployments
            podgrouper = next(name for name in deployments if "grouper" in name)
            yield from no_group(self.use, podgrouper)
        message = self.pod.unscheduled or "no event, no condition"
        yield reason("unknown", message=message)

    def _by_queue(self) -> Reasons:
        """Yield reasons that a pod's queue gives. Raises UnreadError without Queues.

        First that the queue takes no pods, then that no scheduler of KAI runs, that the pod's
        RuntimeClass is absent, and that pod and queue are in different shards.
        """
        scheduling = self.scheduling
        scheduling.require("queues")  # without them no reason is certain
        if scheduling.kai is not None:
            yield from self._wrong_queue()
        if not any(deployment.rolled_out for deployment in scheduling.schedulers):
            yield from self._no_scheduler()
        runtime_class = self.pod.spec.get("runtimeClassName")
        if runtime_class and self.cluster.find("runtimeclasses", runtime_class) is None:
            message = f'RuntimeClass "{runtime_class}" not found'
            yield from meanings_of([message], "operator")
        yield from self._wrong_shard()

    def _no_scheduler(self) -> Reasons:
        """Yield the fault of a KAI pod for which no scheduler runs.

        It is the tenant's if the cluster has no KAI, declared or running, of the release table.
        """
        if self.scheduling.kai is None:
            yield self.subject.tenants_fault(
                "it asks for KAI, and no KAI schedules in this cluster",
                "drop schedulerName, or give the team a KAI: scheduler.mode: virtual",
            )
        yield reason("no-scheduler", cluster=self.scheduling.name)

    def _wrong_queue(self) -> Reasons:
        """Yield that the pod's queue takes no pods of its cluster.

        In this order: the pod names none, an unknown one, one that is declared and absent, one with
        children, or in mode host another one than its team's. All but the third are the tenant's.
        """
        scheduling = self.scheduling
        tree = scheduling.tree
        team = self.team
        team_queue = team.queue if team is not None and team.mode == "host" else None
        choice = team_queue or listed(tree.leaves) or "a leaf queue, declared first"
        queue = self.use.queue
        if queue not in tree.by_name:
            yield absent_queue(self.use, choice, " and not declared")
        elif scheduling.find("queues", queue) is None:
            cause = f"its queue {queue} is declared, and is not there"
            yield self.subject.broken(cause, scheduling.update_command)
        elif not tree.is_leaf(queue):
            choice = listed(tree.leaves_below(queue))
            yield reason("queue-no-leaf", queue=queue, choice=choice)
        elif team_queue not in (None, queue):
            yield self.subject.tenants_fault(
                f"names queue {queue}, but the queue of its team is {team_queue}",
                f"write the label kai.scheduler/queue: {team_queue}",
                check="workload-leaf-queue",
            )

    def _wrong_shard(self) -> Reasons:
        """Yield that a pod's shard label is not that of its queue, which its PodGroup names.

        A shard's scheduler sees the pods with its label, not those that only name its queue. That
        of the default shard sees the pods without the label: none sees those with the value
        `default`. Nothing if the queue is not there.
        """
        queue = self.scheduling.find("queues", self.use.queue or "")
        if queue is None:
            return
        queue_shard = queue.labels.get(NODE_POOL)
        pod_shard = self.pod.labels.get(NODE_POOL)
        if queue_shard == pod_shard:
            return
        fix = f"drop the label {NODE_POOL}"
        if queue_shard:
            fix = f"write the label {NODE_POOL}: {queue_shard}"
        if queue_shard == DEFAULT_SHARD:
            cause = (
                f"its queue {self.use.queue} has the label {NODE_POOL}: {DEFAULT_SHARD}, and only"
                " queues without the label are of the default shard"
            )
            fix = f"take the label {NODE_POOL} off the queue and off the pod"
        elif pod_shard == DEFAULT_SHARD:
            cause = (
                f"has the label {NODE_POOL}: {DEFAULT_SHARD}, and only pods without the label are"
                " of the default shard: no scheduler places it"
            )
        else:
            cause = (
                f"its queue {self.use.queue} is of shard {queue_shard or DEFAULT_SHARD}, and the"
                f" pod of {pod_shard or DEFAULT_SHARD}: neither scheduler places it"
            )
        yield self.subject.tenants_fault(cause, fix)

    def _raise_limit(self, exceeded: ExceededLimit) -> tuple[str, str | Command]:
        """Return how to raise a queue's limit so that the pod runs: words, and a command or "".

        For a queue that the stack does not declare a command with the amount; for a top queue whose
        limit is the team's GPUs the key of these; else the name of the queue and the key path of
        the section of queues. In a team's own stack the host's queues are the platform's, those
        that it does not know and those that the team's queues are below.
        """
        name = exceeded.queue.name
        team = self.team
        declared = self.scheduling.desired
        queue = declared.tree.by_name.get(name)
        if queue is None and declared.declared:
            patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {exceeded.needed:g}}}}}}}}}'
            arguments = f"patch queue {name} --type merge -p '{patch}'"
            return "raise its limit: ", self.scheduling.command(arguments)
        if queue is None or queue.path == declared.queues_key:
            return f"have gpu.limit of {name} raised in the platform's stack file", ""
        share = known_or(queue.shares, {}).get("gpu")
        if team is not None and not queue.parent and share is not None:
            shard = queue.shard or DEFAULT_SHARD
            if share.limit == declared.pools.get(shard, team.gpus):
                pool = f".{shard}" if team.pools else ""
                return f"raise {team.gpus_path}{pool}", ""
        return f"raise gpu.limit of {name} at {declared.queues_key}", ""


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


def refused(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield what API servers or nodes refused lately, if a table knows the message.

    A pod that admission denies does not exist: its owner has an event, or a ReplicaSet a condition.
    Of one object the last message counts: a pod's before an event's before a ReplicaSet's. What is
    in the namespaces of GPU stacks, or in skipped ones, is left out.
    """
    messages = dict(_failures_of_replica_sets(cluster))
    messages.update(_refusals_in_events(cluster))
    messages.update(_refused_pods(cluster, snapshot))
    skipped = GPU_CHARTS | snapshot.skipped_namespaces(cluster)
    for about, message in messages.items():
        name = f"{about.namespace}/{about.name}"
        fault = explain(Affected(cluster, about.kind, name), [message])
        if fault is not None and about.namespace not in skipped:
            yield fault


def _failures_of_replica_sets(cluster: Cluster) -> _Messages:
    """Yield the messages of ReplicaSets that could not create pods."""
    for owner in cluster.all("replicasets"):
        if owner.is_true("ReplicaFailure"):
            about = Involved("ReplicaSet", owner.namespace, owner.name)
            yield about, str(owner.condition("ReplicaFailure").get("message") or "")


def _refusals_in_events(cluster: Cluster) -> _Messages:
    """Yield the messages in events about objects that still lack their pods, the oldest first."""
    oldest_first = sorted(cluster.all("events"), key=lambda event: event.last_seen)
    for event in oldest_first:
        about = involved_in(event)
        if event.get("reason") in _REFUSED and not _is_over(cluster, about, event):
            yield about, str(event.get("message") or "")


def _refused_pods(cluster: Cluster, snapshot: Snapshot) -> _Messages:
    """Yield the messages of pods that nodes refused and that are at most 15 minutes old."""
    for pod in snapshot.pods(cluster):
        status_reason = str(pod.status.get("reason") or "")
        if pod.phase != "Failed" or status_reason not in _REFUSED:
            continue
        if cluster.age_seconds(pod) <= _LATELY_SECONDS:
            about = Involved("Pod", pod.namespace, pod.name)
            yield about, f"{status_reason}: {pod.status.get('message', '')}"


def _is_over(cluster: Cluster, about: Involved, event: KubeObject) -> bool:
    """Whether an event does not matter any more: its object is gone, has its pods, or ended; or
    does not here, because it is of a control plane: `control_plane.vcluster` says why.

    For pods, and for a kind that is not read or not served, it is over 15 minutes after the event.
    """
    late = seconds_since(event.last_seen, cluster.now) > _LATELY_SECONDS
    resource = f"{about.kind.lower()}s"
    if resource not in READS or not cluster.serves(resource):
        return late
    owner = cluster.find(resource, about.name, about.namespace)
    if owner is None or owner.labels.get("app") == "vcluster":
        return True
    if about.kind == "Pod":
        return late or owner.is_true("Ready") or owner.phase == "Succeeded"
    return not lacks_pods(owner)
