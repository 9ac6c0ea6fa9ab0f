"""Pods that wait: why, in words. What is wrong with how they are written is `rule_violations`'."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet.kai.keys import KAI_NAMESPACE, QUEUE_LABEL, SCHEDULER
from kai_fleet_cli.doctor.checks import gpu_capacity
from kai_fleet_cli.doctor.checks.gpu_capacity import Reason
from kai_fleet_cli.doctor.checks.kai.kai_parts import rolled_out
from kai_fleet_cli.doctor.checks.kai.pod_groups import is_ungrouped
from kai_fleet_cli.doctor.checks.rule_violations import path_of, wrong
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import first_meaning, meaning
from kai_fleet_cli.doctor.objects import KubeObject

_PATIENCE = 60.0  # seconds; what takes no longer is on its way
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")


def check(look: Snapshot) -> Iterator[Finding]:
    """Every pod without a node that is well written."""
    for cluster in look.clusters:
        ill = wrong(look, cluster)
        for pod in look.own_pods(cluster):
            if pod.phase != "Pending" or pod["metadata"].get("deletionTimestamp"):
                continue
            reason = None
            if pod.spec.get("nodeName"):
                reason = _not_started(cluster, pod)
            elif not pod.is_true("PodBound") and path_of(pod) not in ill:
                reason = _not_placed(look, cluster, pod)
            if reason is not None:
                cause, fix, same = reason
                yield cluster.broken(pod.pod_subject, cause, fix, same=same)


def _not_placed(look: Snapshot, cluster: ClusterState, pod: KubeObject) -> Reason | None:
    """Why a pod has no node; None while it is on its way. What never ends comes first."""
    scheduling, team = look.scheduling(cluster), look.wanted_of(cluster)
    if pod.spec.get("schedulerName") == SCHEDULER:
        reason = (
            _no_scheduler(scheduling)
            or _no_queue(scheduling, pod)
            or _no_runtime_class(cluster, pod)
            or gpu_capacity.never(scheduling, cluster, pod, team)
            or gpu_capacity.full(scheduling, cluster, pod, team)
        )
    else:
        reason = gpu_capacity.too_large(cluster, pod)
    # The last events, then the condition, in words that are known.
    events = [str(it.get("message") or "") for it in reversed(cluster.events_of(pod))]
    reason = reason or _known(cluster, *events, pod.unscheduled)
    if reason is None and cluster.kai is not None and is_ungrouped(cluster, pod):
        return None  # `pod_groups` says that it has no PodGroup
    if reason is None and cluster.age(pod) > _PATIENCE:
        message = pod.unscheduled or "no event, no condition"
        cause = f"it has no node, and nothing known says why: {message}"
        return Reason(cause, _describe(cluster, pod))
    return reason


def _no_scheduler(cluster: ClusterState) -> Reason | None:
    """No KAI scheduler is there, or none serves."""
    if "deployments" in cluster.unreadable:
        return None
    there = [cluster.named("deployments", name, KAI_NAMESPACE) for name in cluster.schedulers]
    if any(item is not None and rolled_out(item) for item in there):
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


def _no_queue(cluster: ClusterState, pod: KubeObject) -> Reason | None:
    """Its queue is one that the stack declares; another one is `rule_violations`'."""
    name = pod.labels.get(QUEUE_LABEL)
    if "queues" in cluster.unreadable or name is None or name not in cluster.wanted.queues:
        return None
    if cluster.named("queues", name):
        return None
    return Reason(f"its queue {name} is not there, and the stack declares it", cluster.update)


def _no_runtime_class(cluster: ClusterState, pod: KubeObject) -> Reason | None:
    name = pod.spec.get("runtimeClassName")
    if not name or "runtimeclasses" in cluster.unreadable or cluster.named("runtimeclasses", name):
        return None
    known = meaning(f'RuntimeClass "{name}" not found')
    fix = cluster.filled_in(known.fix) if known else "drop runtimeClassName"
    return Reason(f"its RuntimeClass {name} is not there", fix)


def _known(cluster: ClusterState, *texts: str) -> Reason | None:
    known = first_meaning(texts)
    return Reason(known.cause, cluster.filled_in(known.fix), known.same) if known else None


def _describe(cluster: ClusterState, pod: KubeObject) -> str:
    return f"look with: `{cluster.kubectl} -n {pod.namespace} describe pod {pod.name}`"


def _not_started(cluster: ClusterState, pod: KubeObject) -> Reason | None:
    """It has a node, and its containers do not start there."""
    for container in pod.status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        text = f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
        if (known := _known(cluster, text)) is not None:
            return known
        if waiting.get("reason") in _CANNOT_START:
            return Reason(f"its container does not start: {text}", _describe(cluster, pod))
    return None
