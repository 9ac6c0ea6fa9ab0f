"""Pods that wait: why, in words. What is wrong with how they are written is `rule_violations`'."""

from typing import Final

from kai_fleet.fleet.amounts import SLACK
from kai_fleet.fleet.cluster import Team
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import PodUse, requests_of
from kai_fleet.releases import keys, mig
from kai_fleet.wording import counted
from kai_fleet_cli.usage import upwards
from kai_fleet_cli.waiting.finding import Reason
from kai_fleet_cli.waiting.placement import COUNTED, by_nodes, no_room
from kai_fleet_cli.waiting.pod_groups import is_ungrouped
from kai_fleet_cli.waiting.read_cluster import ClusterPods, Findings, ReadCluster
from kai_fleet_cli.waiting.rule_violations import path_of, wrong

_INSUFFICIENT: Final = "Insufficient"
_PATIENCE = 60.0  # seconds; what takes no longer is on its way
_NO_SANDBOX: Final = "FailedCreatePodSandBox"
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")


def check(of: ClusterPods) -> Findings:
    """Every pod of a cluster without a node that is well written."""
    ill = wrong(of)
    for pod in of.pods:
        use = of.cluster.use_of(pod)
        if use is None or use.phase != "Pending" or use.ending:
            continue
        reason = None
        if use.node:
            reason = _not_started(of.cluster, pod)
        elif not pod.is_true("PodBound") and path_of(pod) not in ill:
            reason = _not_placed(of, pod, use)
        if reason is not None:
            yield of.cluster.broken(use.subject, *reason[:3])


def _not_placed(of: ClusterPods, pod: KubeObject, use: PodUse) -> Reason | None:
    """Why a pod has no node; None while it is on its way. What never ends comes first."""
    cluster, scheduling = of.cluster, of.scheduling
    if use.scheduled_by_kai:
        reason = (
            _no_scheduler(scheduling)
            or _no_queue(scheduling, pod)
            or _no_runtime_class(cluster, pod)
            or _no_gpus(of, pod, use)
        )
    else:
        reason = _too_large(cluster, pod, use)
    # The last events, then the condition, in words that are known.
    events = [str(it.get("message") or "") for it in reversed(cluster.events_of(pod))]
    reason = reason or _by_messages(of, pod, [*events, pod.unscheduled])
    if reason is None and cluster.kai is not None and is_ungrouped(cluster, pod):
        return None  # `pod_groups` says that it has no PodGroup
    if reason is None and cluster.age(pod) > _PATIENCE:
        message = pod.unscheduled or "no event, no condition"
        cause = f"it has no node, and nothing known says why: {message}"
        return Reason(cause, cluster.describe("pod", pod.name, pod.namespace))
    return reason


def _by_messages(of: ClusterPods, pod: KubeObject, texts: list[str]) -> Reason | None:
    """What the first known message means; counts of nodes are judged by the nodes it may go to."""
    known = of.cluster.explain(*texts)
    if known is None or known.name not in COUNTED:
        return known
    if (reason := by_nodes(of, pod)) is not None:
        return reason
    text = next(text for text in texts if of.cluster.explain(text))
    return no_room(text) if _INSUFFICIENT in text else known


def _no_scheduler(cluster: ReadCluster) -> Reason | None:
    """No KAI scheduler is there, or none serves."""
    if "deployments" in cluster.unreadable:
        return None
    deployments = cluster.within("deployments", keys.KAI_NAMESPACE)
    if any(item.rolled_out for item in deployments if item.name in cluster.schedulers):
        return None
    if cluster.kai is None:
        return Reason(
            "it asks for KAI, and no KAI schedules in this cluster",
            "drop schedulerName, or give the team a KAI: scheduler.mode: virtual",
        )
    return Reason(
        "no scheduler of KAI serves here",
        f"mend KAI first: kai-parts of {cluster.name} says what is wrong with it",
    )


def _no_queue(cluster: ReadCluster, pod: KubeObject) -> Reason | None:
    """Its queue is one that the stack declares; another one is `rule_violations`'."""
    name = pod.labels.get(keys.QUEUE_LABEL)
    if "queues" in cluster.unreadable or name is None or cluster.named("queues", name):
        return None
    declared = name in cluster.wanted.queue_specs
    why = f"its queue {name} is not there, and the stack declares it"
    return Reason(why, cluster.update) if declared else None


def _no_runtime_class(cluster: ReadCluster, pod: KubeObject) -> Reason | None:
    name = pod.spec.get("runtimeClassName")
    if not name or "runtimeclasses" in cluster.unreadable or cluster.named("runtimeclasses", name):
        return None
    known = cluster.explain(f'RuntimeClass "{name}" not found')
    fix = known.fix if known else "drop runtimeClassName"
    return Reason(f"its RuntimeClass {name} is not there", fix)


def _not_started(cluster: ReadCluster, pod: KubeObject) -> Reason | None:
    """It has a node, and its containers do not start there."""
    for text in pod.waiting:
        if (known := cluster.explain(text)) is not None:
            return known
        if text.startswith(_CANNOT_START):
            look = cluster.describe("pod", pod.name, pod.namespace)
            return Reason(f"its container does not start: {text}", look)
    sandbox = [it for it in cluster.events_of(pod) if it.get("reason") == _NO_SANDBOX]
    return cluster.explain(*(str(it.get("message") or "") for it in reversed(sandbox)))


def _no_gpus(of: ClusterPods, pod: KubeObject, use: PodUse) -> Reason | None:
    """It asks for more than it may ever have, or for more than its queues have left."""
    scheduling, team = of.scheduling, of.team
    wants, words = _together(of.cluster, pod, use)
    queues = upwards(scheduling.usage.queues, use.queue) if use.amounts.gpu else ()
    limited = [queue for queue in queues if queue.limit != UNLIMITED]
    for queue in limited:
        if wants > queue.limit + SLACK:
            return Reason(
                f"{words}, and queue {queue.name} may hold at most {queue.limit:g}: it never runs",
                f"ask for at most {queue.limit:g}, or"
                f" {_raise(scheduling, queue.name, wants, team)}",
                f"never {queue.name}",
            )
    if team is not None and team.declared:
        for kind, asked in mig.slices(requests_of(pod.spec)).items():
            most = team.slices.get(kind, asked)
            if asked > most:
                return Reason(
                    f"it asks for {asked:g} {kind}, and its team may hold at most {most}: it never"
                    " runs",
                    f"ask for at most {most}, or have {kind} raised for the team",
                    f"never {kind}",
                )
        if team.gpus is not None and wants > team.gpus:
            return Reason(
                f"{words}, and team {team.name} may hold at most {team.gpus}: it never runs",
                f"ask for at most {team.gpus}, or raise {team.gpus_path}",
                f"never team {team.name}",
            )
    if (reason := _too_large(of.cluster, pod, use)) is not None:
        return reason
    for queue in limited:
        if queue.in_use + wants > queue.limit + SLACK:
            more = _raise(scheduling, queue.name, queue.in_use + wants, team)
            return Reason(
                f"{words}, and queue {queue.name} holds {queue.in_use:g} of at most"
                f" {queue.limit:g}",
                f"wait for a pod of that queue to end, ask for less, or {more}",
                f"full {queue.name}",
            )
    return None


def _too_large(cluster: ReadCluster, pod: KubeObject, use: PodUse) -> Reason | None:
    """No node has as many GPUs as it asks for, even empty."""
    if "nodes" in cluster.unreadable:
        return None
    gpu = cluster.wanted.gpu_resource
    whole = use.gpu.whole or (use.gpu.devices if use.gpu.shared else 0)
    nodes = [node for node in cluster.all("nodes") if node.takes_pods]
    for kind, wants in {gpu: whole, **mig.slices(requests_of(pod.spec))}.items():
        most = max((node.gpus(kind) for node in nodes), default=0.0)
        if wants > most:
            what = "GPUs" if kind == gpu else kind
            fix = f"ask for at most {most:g} in one pod, or add larger nodes to the pool"
            return Reason(
                f"it asks for {wants:g} {what}, and no Ready node has more than {most:g}: it never"
                " runs",
                fix if most else f"add nodes with {what} to the pool, or ask for none",
                "never node",
            )
    return None


def _together(cluster: ReadCluster, pod: KubeObject, use: PodUse) -> tuple[float, str]:
    """The GPUs that have to be free at once for a pod to run, with its gang; and the sentence."""
    own, name = use.amounts.gpu, pod.annotations.get(keys.POD_GROUP)
    group = cluster.named("podgroups", name, pod.namespace) if name else None
    least = int(group.spec.get("minMember") or 1) if group else 1
    if least < 2:
        return own, f"it asks for {counted(own, 'GPU')}"
    amounts = cluster.gpus_by_group.get((pod.namespace, name), [])
    wants = sum(amounts[:least]) + own * max(0, least - len(amounts))
    return wants, f"its group of {least} pods asks for {counted(wants, 'GPU')} together"


def _raise(cluster: ReadCluster, queue: str, to: float, team: Team | None) -> str:
    """What raises a queue's limit: where it is declared, or a command for one made by hand."""
    wanted = cluster.wanted.tree.by_name.get(queue)
    if wanted is None and cluster.wanted.declared:
        patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
        return f"raise its limit: `{cluster.kubectl} patch queue {queue} --type merge -p '{patch}'`"
    if wanted is not None and team is not None and not wanted.parent and "gpu" in wanted.shares:
        pool = wanted.shard or keys.DEFAULT_SHARD
        if wanted.shares["gpu"].limit == cluster.wanted.pools.get(pool, team.gpus):
            return f"raise {team.gpus_path}{f'.{pool}' if team.pools else ''}"
    # Without a stack's file nobody knows who declares it; a limit may be all GPUs of the team.
    used = cluster.usage.queues.get(queue)
    top = not cluster.wanted.declared and used is not None and not used.parent
    gpus = ", and the team's gpus where they are less" if top else ""
    return f"raise gpu.limit of {queue} at {cluster.wanted.queues_key}{gpus}"
