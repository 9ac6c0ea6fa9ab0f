"""Pods: why they wait, keys that KAI ignores, and pods that were refused."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from kai_fleet.cluster.kube.objects import KubeObject, in_pool, seconds_since
from kai_fleet.releases import GPU_CHARTS
from kai_fleet.releases.keys import DEFAULT_SHARD, NODE_POOL, POD_GROUP, QUEUE_LABEL, right_key
from kai_fleet.wording import counted, listed
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_cli.doctor.usage import upwards
from kai_fleet_policies.model.cluster import Team
from kai_fleet_policies.model.pod_use import PodUse
from kai_fleet_policies.model.queues import SLACK, UNLIMITED

Reasons: TypeAlias = Iterator[Fault | None]
_PATIENCE: Final = 60.0  # seconds; a shorter wait is normal
_NO_GROUP: Final = "kai.scheduler/skip-podgrouper"
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")
_LATELY: Final = 900.0  # seconds; what was repaired is not reported for long
# The last two are KubeRay's, about a RayCluster.
_REFUSED: Final = (
    *("FailedCreate", "SyncError", "UnexpectedAdmissionError"),
    *("FailedToCreateHeadPod", "FailedToCreateWorkerPod"),
)


def waiting(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Why each pod waits. Raises UnreadError in the end, for those of which it is not known."""
    unread = list[UnreadError]()
    for pod in snapshot.pods(cluster):
        try:
            found = why(pod, cluster, snapshot)
        except UnreadError as error:
            unread.append(error)
            continue
        if found is not None:
            yield found
    if unread:
        raise unread[0]


def why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Why a pod does not run; None for one that runs, or is on its way."""
    use = cluster.uses.get(pod.namespaced_name)
    if use is None or use.phase != "Pending" or use.ending:
        return None
    reasons = _not_started if use.node else _not_placed
    return next(filter(None, reasons(pod, use, cluster, snapshot)), None)


def _not_started(pod: KubeObject, use: PodUse, cluster: Cluster, _: Snapshot) -> Reasons:
    """Reasons why the containers of a pod with a node do not start."""
    name = pod.namespaced_name
    for text in pod.waiting:
        yield explain(cluster, "pod", name, [text], "pending")
        if text.startswith(_CANNOT_START):
            yield fault("pod-cannot-start", cluster, name, text=text)
    yield explain(cluster, "pod", name, cluster.messages_of(pod), "pending")


def _not_placed(pod: KubeObject, use: PodUse, cluster: Cluster, snapshot: Snapshot) -> Reasons:
    """Reasons why a pod has no node: first what can never be met, last what messages mean."""
    kai, name = snapshot.scheduling(cluster), pod.namespaced_name
    found, by_kai = partial(fault, cluster=cluster, name=name), use.scheduled_by_kai
    bound = (event.get("reason") == "Bound" for event in cluster.events_of(pod))
    if pod.is_true("PodBound") or any(bound):
        yield found("pod-bound-in-name-only")
    if gates := pod.spec.get("schedulingGates"):
        yield found("pod-gated", gates=", ".join(str(gate.get("name")) for gate in gates))
    if by_kai:
        yield from _by_queue(pod, use, cluster, snapshot)
        yield from _by_limits(use, cluster, snapshot)
    elif kai.kai is not None and QUEUE_LABEL in pod.labels:
        yield found("pod-of-another-scheduler")
    if labels := _no_node_has(pod, cluster, snapshot):
        yield found("pod-without-node", labels=labels)
    # No node has as many GPUs as it asks for, even empty.
    whole = use.gpu.whole or (use.gpu.devices if use.gpu.shared else 0)
    most = cluster.most_gpus
    if whole > most:
        yield found("pod-too-large", asked=f"{whole:g}", most=f"{most:g}")
    about = snapshot.around(pod, cluster)
    yield explain(cluster, "pod", name, cluster.messages_of(pod), "pending", about)
    if cluster.age(pod) <= _PATIENCE:
        return
    grouped = pod.annotations.get(POD_GROUP) or _NO_GROUP in pod.annotations
    if by_kai and cluster.kai is not None and not grouped:
        parts = cluster.kai.deployments
        yield found("pod-ungrouped", grouper=next(part for part in parts if "grouper" in part))
    yield found("pod-unexplained", text=pod.unscheduled or "no event, no condition")


def _no_node_has(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> str:
    """The labels that a pod asks of its node, where no node has them; else "".

    The nodes are the host's, which a vCluster without a scheduler of its own makes up.
    """
    selector, team = pod.spec.get("nodeSelector") or {}, snapshot.team_of(cluster)
    # An autoscaler may make such a node.
    if not selector or (team is not None and snapshot.settings.own_of(team.name).autoscaled):
        return ""
    sees_nodes = team is None or team.mode == "virtual"
    nodes = (cluster if sees_nodes else snapshot.host).all("nodes")
    if not nodes or any(in_pool(node.labels, selector) for node in nodes):
        return ""
    return ", ".join(f"{key}={value}" for key, value in selector.items())


def _by_queue(pod: KubeObject, use: PodUse, cluster: Cluster, snapshot: Snapshot) -> Reasons:
    """Reasons of its queue: none that takes pods, no KAI that serves it, another shard."""
    kai, team, queue = snapshot.scheduling(cluster), snapshot.team_of(cluster), use.queue
    found = partial(fault, cluster=cluster, name=pod.namespaced_name, queue=queue)
    own = team.queue if team is not None and team.mode == "host" else None
    tree, write = kai.tree, own or listed(kai.tree.leaves) or "a leaf queue, declared first"
    if kai.kai is not None:
        if queue is None:
            yield found("pod-without-queue", write=write)
        elif queue not in tree.by_name:
            yield found("pod-of-absent-queue", write=write)
        elif kai.named("queues", queue) is None:
            yield found("pod-queue-absent", update=kai.update)
        elif not tree.is_leaf(queue):
            yield found("pod-of-parent-queue", write=listed(tree.leaves_below(queue)))
        elif own not in (None, queue):
            yield found("pod-of-another-queue", write=own)
    serves = any(item.rolled_out for item in kai.schedulers)
    if not serves:
        yield found("pod-without-scheduler" if kai.kai else "pod-without-kai", of=kai.name)
    runtime_class = pod.spec.get("runtimeClassName")
    if runtime_class and cluster.named("runtimeclasses", runtime_class) is None:
        text = f'RuntimeClass "{runtime_class}" not found'
        yield explain(cluster, "pod", pod.namespaced_name, [text], "pending")
    item, has = kai.named("queues", pod.labels.get(QUEUE_LABEL, "")), pod.labels.get(NODE_POOL)
    if item is not None and (shard := item.labels.get(NODE_POOL)) != has:
        # A shard's scheduler sees the pods with its label, not those that only name its queue.
        fix = f"write the label {NODE_POOL}: {shard}" if shard else f"drop the label {NODE_POOL}"
        shard, has = shard or DEFAULT_SHARD, has or DEFAULT_SHARD
        yield found("pod-of-another-shard", fix=fix, shard=shard, has=has)


def _by_limits(use: PodUse, cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Limits of its queue and those above: too low for the pod, or reached now."""
    kai, team, gpus = snapshot.scheduling(cluster), snapshot.team_of(cluster), use.gpus
    chain = upwards(kai.usage.queues, use.queue) if gpus else ()
    above = [queue for queue in chain if queue.limit != UNLIMITED]
    for row in ("pod-over-limit", "pod-queue-full"):
        for queue in above:
            total = gpus + (queue.in_use if row == "pod-queue-full" else 0.0)
            if total > queue.limit + SLACK:
                values = {"held": f"{queue.in_use:g}", "most": f"{queue.limit:g}"}
                values |= {"queue": queue.name, "more": _raise(kai, team, queue.name, total)}
                values |= {"name": use.namespaced_name, "asked": counted(gpus, "GPU")}
                yield fault(row, cluster, **values)


def _raise(kai: Cluster, team: Team | None, queue: str, to: float) -> str:
    """How to raise a queue's limit: the key that declares it, or a command."""
    own = kai.desired.tree.by_name.get(queue)
    if own is None and kai.desired.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
        return f"raise its limit: `{kai.kubectl} patch queue {queue} --type merge -p '{patch}'`"
    if own is not None and team is not None and not own.parent and "gpu" in own.shares:
        pool = own.shard or DEFAULT_SHARD
        if own.shares["gpu"].limit == kai.desired.pools.get(pool, team.gpus):
            return f"raise {team.gpus_path}{f'.{pool}' if team.pools else ''}"
    return f"raise gpu.limit of {queue} at {kai.desired.queues_key}"


def wrong_keys(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Labels and annotations that look like KAI's."""
    for pod in snapshot.pods(cluster) if snapshot.scheduling(cluster).kai is not None else ():
        for kind, keys in (("label", pod.labels), ("annotation", pod.annotations)):
            for key in keys if not pod.ended else ():
                if (meant := right_key(key)) not in (None, key):
                    where = "label" if meant == QUEUE_LABEL else "annotation"
                    write = f"write the {where} {meant}" if meant else "drop it"
                    values = {"has": f"the {kind} {key}", "write": write}
                    yield fault("pod-with-wrong-key", cluster, pod.namespaced_name, **values)


def without_group(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Pods whose PodGroup is gone: KAI does not count them."""
    for pod in cluster.all("pods"):
        use, group = cluster.uses.get(pod.namespaced_name), pod.annotations.get(POD_GROUP)
        gone = group and cluster.named("podgroups", group, pod.namespace) is None
        if gone and use is not None and use.scheduled_by_kai:
            yield fault("pod-group-gone", cluster, pod.namespaced_name)


def refused(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Pods that API servers or nodes refused lately, by the events of what makes them.

    A pod that admission denies does not exist: its owner has an event, a ReplicaSet a condition.
    """
    texts: dict[tuple[str, str, str], str] = {}
    for maker in cluster.all("replicasets"):
        failure = maker.condition("ReplicaFailure")
        if failure.get("status") == "True":
            texts["ReplicaSet", maker.namespace, maker.name] = str(failure.get("message") or "")
    for event in sorted(cluster.all("events"), key=lambda event: event.last_seen):
        about: dict[str, Any] = event.get("involvedObject") or {}
        kind, namespace, name = (str(about.get(key, "")) for key in ("kind", "namespace", "name"))
        if event.get("reason") in _REFUSED and not _is_over(cluster, kind, namespace, name, event):
            texts[kind, namespace, name] = str(event.get("message") or "")
    for pod in snapshot.pods(cluster):
        reason = str(pod.status.get("reason") or "")
        if pod.phase == "Failed" and reason in _REFUSED and cluster.age(pod) <= _LATELY:
            texts["Pod", pod.namespace, pod.name] = f"{reason}: {pod.status.get('message', '')}"
    apart = GPU_CHARTS | snapshot.apart(cluster)
    for (kind, namespace, name), text in texts.items():
        known = explain(cluster, kind, f"{namespace}/{name}", [text])
        if known is not None and namespace not in apart:
            yield known


def _is_over(cluster: Cluster, kind: str, namespace: str, name: str, event: KubeObject) -> bool:
    """Whether the object is gone, or has its pods by now."""
    late = seconds_since(event.last_seen, cluster.now) > _LATELY
    kinds = f"{kind.lower()}s"
    if not cluster.asked(kinds) or not cluster.serves(kinds):
        return late
    item = cluster.named(kinds, name, namespace)
    if item is None or kind == "Pod":
        return item is None or late or item.is_true("Ready") or item.phase == "Succeeded"
    created = ("replicas", "currentNumberScheduled", "active", "succeeded")
    has = max(item.status.get(key) or 0 for key in created)
    desired = item.spec.get("replicas", item.status.get("desiredNumberScheduled", 1))
    ended = item.is_true("Complete") or item.is_true("Failed") or item.spec.get("suspend")
    return bool(ended or has >= desired)
