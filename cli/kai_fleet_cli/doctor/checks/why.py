"""Why a pod waits: what can never be had first, then what is full, then what messages mean."""

from typing import Any, Final

from kai_fleet.fleet.amounts import SLACK
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet.kube.pods import PodUse, requests_of
from kai_fleet.releases import keys, mig
from kai_fleet.wording import counted, listed
from kai_fleet_cli.doctor.causes import Fault, explain, fault, quoted
from kai_fleet_cli.doctor.desired import DesiredTeam
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import upwards

_PATIENCE: Final = 60.0  # seconds; what takes no longer is on its way
_GROUPED: Final = 30.0  # seconds until KAI's pod-grouper has made a PodGroup
_NO_GROUP: Final = "kai.scheduler/skip-podgrouper"
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")
# The known messages that count nodes, most of which are of other pools.
_COUNTED: Final = frozenset({"no-such-node", "taint", "no-room"})
_CORDONED: Final = "node.kubernetes.io/unschedulable"


def why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Why a pod does not run; None for one that runs, or is on its way."""
    use, name = cluster.use_of(pod), f"{pod.namespace}/{pod.name}"
    if use is None or use.phase != "Pending" or use.ending:
        return None
    kai = snapshot.scheduling(cluster)
    if use.node:
        return _not_started(pod, name, cluster)
    if pod.is_true("PodBound") or any(it.get("reason") == "Bound" for it in cluster.events_of(pod)):
        return fault("pod-bound-in-name-only", cluster, name)
    found: Fault | None = None
    if use.scheduled_by_kai:
        found = _queue(use, name, kai, snapshot.team_of(cluster)) or _by_kai(
            pod, name, cluster, kai
        )
        found = found or _no_gpus(pod, use, cluster, snapshot)
    elif kai.kai is not None and keys.QUEUE_LABEL in pod.labels:
        return fault("pod-of-another-scheduler", cluster, name)
    found = found or _too_large(pod, use, cluster) or _by_messages(pod, name, cluster, snapshot)
    if found is None and _is_ungrouped(pod, cluster):
        parts = cluster.kai.deployments if cluster.kai else ()
        grouper = "podgrouper" if "podgrouper" in parts else "pod-grouper"
        return fault("pod-ungrouped", cluster, name, grouper=grouper)
    if found is None and cluster.age(pod) > _PATIENCE:
        text = pod.unscheduled or "no event, no condition"
        return fault("pod-unexplained", cluster, name, text=text)
    return found


def _is_ungrouped(pod: KubeObject, cluster: Cluster) -> bool:
    return (
        pod.spec.get("schedulerName") == keys.SCHEDULER
        and cluster.kai is not None
        and not pod.annotations.get(keys.POD_GROUP)
        and _NO_GROUP not in pod.annotations
        and cluster.age(pod) > _GROUPED
    )


def _known(pod: KubeObject, cluster: Cluster, *texts: str) -> Fault | None:
    return explain(cluster, "pod", f"{pod.namespace}/{pod.name}", texts)


def _not_started(pod: KubeObject, name: str, cluster: Cluster) -> Fault | None:
    """It has a node, and its containers do not start there."""
    for text in pod.waiting:
        if _known(pod, cluster, text) is None and text.startswith(_CANNOT_START):
            return fault("pod-cannot-start", cluster, name, text=text)
    return _known(pod, cluster, *cluster.messages_of(pod))


def _by_messages(pod: KubeObject, name: str, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """What the first known message means; counts of nodes are judged by the pod's own nodes."""
    for text in cluster.messages_of(pod):
        known = _known(pod, cluster, text)
        if known is not None and known.row not in _COUNTED:
            return known
        if known is not None:
            found = _no_node(pod, name, cluster, snapshot)
            room = fault("pod-no-room", cluster, name, text=quoted(text))
            return found or (room if "Insufficient" in text else known)
    return None


def _queue(use: PodUse, name: str, kai: Cluster, team: DesiredTeam | None) -> Fault | None:
    """It names no queue that takes its pods: a leaf, in host mode the one of its team."""
    tree, own = kai.tree, team.queue if team is not None and team.mode == "host" else None
    leaves = tree.leaves
    write = own or listed(leaves) or "a leaf queue, declared first"
    if kai.kai is None or "queues" in kai.unreadable:
        return None
    if use.queue is None:
        return fault("pod-without-queue", kai, name, write=write)
    if use.queue not in tree.by_name:
        return fault("pod-of-absent-queue", kai, name, queue=use.queue, write=write)
    if kai.named("queues", use.queue) is None:
        return fault("pod-queue-absent", kai, name, queue=use.queue)
    if use.queue not in leaves:
        below = listed(tree.leaves_below(use.queue))
        return fault("pod-of-parent-queue", kai, name, queue=use.queue, write=below)
    if own not in (None, use.queue):
        return fault("pod-of-another-queue", kai, name, queue=use.queue, write=own)
    return None


def _by_kai(pod: KubeObject, name: str, cluster: Cluster, kai: Cluster) -> Fault | None:
    """What keeps KAI from placing it, besides GPUs."""
    deployments = kai.within("deployments", keys.KAI_NAMESPACE)
    serves = any(item.rolled_out for item in deployments if item.name in kai.schedulers)
    if not serves and "deployments" not in kai.unreadable:
        return fault("pod-without-scheduler" if kai.kai else "pod-without-kai", kai, name)
    runtime_class = pod.spec.get("runtimeClassName")
    absent = runtime_class and cluster.named("runtimeclasses", runtime_class) is None
    if absent and "runtimeclasses" not in cluster.unreadable:
        return _known(pod, cluster, f'RuntimeClass "{runtime_class}" not found')
    queue = kai.named("queues", pod.labels.get(keys.QUEUE_LABEL, ""))
    has, shard = pod.labels.get(keys.NODE_POOL), queue and queue.labels.get(keys.NODE_POOL)
    if queue is not None and shard != has:
        # A shard's scheduler sees the pods with its label, not those that only name its queue.
        write = f"write the label {keys.NODE_POOL}: {shard}" if shard else "drop that label"
        values = {"shard": shard or keys.DEFAULT_SHARD, "has": has or keys.DEFAULT_SHARD}
        return fault("pod-of-another-shard", kai, name, queue=queue.name, fix=write, **values)
    return None


def _no_gpus(pod: KubeObject, use: PodUse, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """It asks for more than it may ever have, or for more than its queues have left."""
    kai, team, name = (
        snapshot.scheduling(cluster),
        snapshot.team_of(cluster),
        f"{pod.namespace}/{pod.name}",
    )
    wants, asks = _together(pod, use, cluster)
    above = upwards(kai.usage.queues, use.queue) if use.amounts.gpu else ()
    queues = [queue for queue in above if queue.limit != UNLIMITED]
    most = [
        (f"queue {it.name}", it.limit, wants, asks, _raise(kai, it.name, wants, team))
        for it in queues
    ]
    if team is not None and team.declared:
        for kind, asked in mig.slices(requests_of(pod.spec)).items():
            granted, words = float(team.slices.get(kind, 0)), f"it asks for {asked:g} {kind}"
            raised = f"have {kind} raised for the team"
            most.append((f"team {team.name}", granted, asked, words, raised))
        if team.gpus is not None:
            raised = f"raise {team.gpus_path}"
            most.append((f"team {team.name}", team.gpus, wants, asks, raised))
    for what, bound, amount, words, more in most:
        if amount > bound + SLACK:
            values = {"what": what, "asks": words, "most": f"{bound:g}", "more": more}
            return fault("pod-over-limit", cluster, name, **values)
    if (found := _too_large(pod, use, cluster)) is not None:
        return found
    for queue in queues:
        if queue.in_use + wants > queue.limit + SLACK:
            values = {"queue": queue.name, "held": f"{queue.in_use:g}", "most": f"{queue.limit:g}"}
            more = _raise(kai, queue.name, queue.in_use + wants, team)
            return fault("pod-queue-full", cluster, name, asks=asks, more=more, **values)
    return None


def _too_large(pod: KubeObject, use: PodUse, cluster: Cluster) -> Fault | None:
    """No node has as many GPUs as it asks for, even empty."""
    gpu, name = cluster.desired.gpu_resource, f"{pod.namespace}/{pod.name}"
    whole = use.gpu.whole or (use.gpu.devices if use.gpu.shared else 0)
    nodes = [node for node in cluster.all("nodes") if node.takes_pods]
    for kind, wants in {gpu: whole, **mig.slices(requests_of(pod.spec))}.items():
        most = max((node.gpus(kind) for node in nodes), default=0.0)
        if wants > most and "nodes" not in cluster.unreadable:
            what = "GPUs" if kind == gpu else kind
            values = {"asked": f"{wants:g}", "what": what, "most": f"{most:g}"}
            return fault("pod-too-large", cluster, name, **values)
    return None


def _together(pod: KubeObject, use: PodUse, cluster: Cluster) -> tuple[float, str]:
    """The GPUs that have to be free at once for a pod to run, with its gang; and in words."""
    own, name = use.amounts.gpu, pod.annotations.get(keys.POD_GROUP)
    group = cluster.named("podgroups", name, pod.namespace) if name else None
    least = int(group.spec.get("minMember") or 1) if group else 1
    if least < 2 or name is None:
        return own, f"it asks for {counted(own, 'GPU')}"
    amounts = cluster.gpus_by_group.get((pod.namespace, name), [])
    wants = sum(amounts[:least]) + own * max(0, least - len(amounts))
    return wants, f"its group of {least} pods asks for {counted(wants, 'GPU')} together"


def _raise(kai: Cluster, queue: str, to: float, team: Any) -> str:
    """What raises a queue's limit: the key that declares it, or a command for one made by hand."""
    desired, own = kai.desired, kai.desired.tree.by_name.get(queue)
    if own is None and desired.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
        return f"raise its limit: `{kai.kubectl} patch queue {queue} --type merge -p '{patch}'`"
    if own is not None and team is not None and not own.parent and "gpu" in own.shares:
        pool = own.shard or keys.DEFAULT_SHARD
        if own.shares["gpu"].limit == desired.pools.get(pool, team.gpus):
            return f"raise {team.gpus_path}{f'.{pool}' if team.pools else ''}"
    return f"raise gpu.limit of {queue} at {desired.queues_key}"


def _no_node(pod: KubeObject, name: str, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Why none of the nodes with the labels that a pod selects takes it; None where some may."""
    team, host = snapshot.team_of(cluster), snapshot.host
    # A scheduler inside sees its copies of nodes, without the taints that the vCluster's pods
    # tolerate; in other modes the host's scheduler sees its own.
    inside = team is not None and team.mode == "virtual" and cluster.all("nodes")
    where = cluster if inside or "nodes" in host.unreadable else host
    pool = team.node_pool if team is not None else {}
    own = [node for node in where.all("nodes") if in_pool(node.labels, pool)]
    selector = pod.spec.get("nodeSelector") or {}
    if not own or (pod.spec.get("affinity") or {}).get("nodeAffinity"):
        return None  # the scheduler's message has to do
    matching = [node for node in own if in_pool(node.labels, selector)]
    if not matching:
        asked = ", ".join(f"{key}={value}" for key, value in selector.items())
        return fault("pod-no-labels", cluster, name, count=len(own), asked=asked)
    reasons = [_keeps_off(pod, node) for node in matching]
    if "" in reasons:
        return None
    causes = ", ".join(f"{reasons.count(each)} {each}" for each in sorted(set(reasons)))
    return fault("pod-no-node", cluster, name, count=len(matching), causes=causes)


def _keeps_off(pod: KubeObject, node: KubeObject) -> str:
    """What keeps a pod off a node; "" where nothing does."""
    if node.spec.get("unschedulable"):
        return "cordoned"
    for taint in node.spec.get("taints") or []:
        if taint.get("effect") not in ("NoSchedule", "NoExecute") or taint["key"] == _CORDONED:
            continue
        tolerated = any(
            it.get("effect") in (None, "", taint["effect"])
            and it.get("key") in (None, "", taint["key"])
            and (it.get("operator") == "Exists" or it.get("value", "") == taint.get("value", ""))
            for it in pod.spec.get("tolerations") or []
        )
        if not tolerated:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"tainted ({taint['key']}{value}:{taint['effect']})"
    return "" if node.is_true("Ready") else "not Ready"
