"""Pods that wait: why, in words. What is wrong with how they are written is `written_wrong`'s."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet.kai.keys import KAI_NAMESPACE, QUEUE_LABEL, SCHEDULER
from kai_fleet_cli.doctor.checks import gpu_capacity
from kai_fleet_cli.doctor.checks.gpu_capacity import Why
from kai_fleet_cli.doctor.checks.kai.kai_parts import rolled_out
from kai_fleet_cli.doctor.checks.kai.pod_groups import is_ungrouped
from kai_fleet_cli.doctor.checks.rule_violations import path_of, wrong
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import meaning
from kai_fleet_cli.doctor.objects import (
    Object,
    condition,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    pod_subject,
    spec,
    status,
)

NAME = "pending"
_PATIENCE = 60.0  # what takes no longer is on its way
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")


def check(look: Snapshot) -> Iterator[Finding]:
    """Every pod without a node that is well written."""
    for cluster in look.clusters:
        ill = wrong(look, cluster)
        for pod in look.own_pods(cluster):
            if status(pod).get("phase") != "Pending" or pod["metadata"].get("deletionTimestamp"):
                continue
            if spec(pod).get("nodeName"):
                why = _not_started(cluster, pod)
            elif not is_true(pod, "PodBound") and path_of(pod) not in ill:
                why = not_placed(look, cluster, pod)
            else:
                continue
            if why is not None:
                cause, fix, same = why
                yield cluster.broken(NAME, pod_subject(pod), cause, fix, same)


def not_placed(look: Snapshot, cluster: ClusterState, pod: Object) -> Why | None:
    """Why a pod has no node; None while it is on its way. What never ends is said first."""
    scheduling = look.scheduling(cluster)
    seen = look.teams.get(cluster.name)
    team = seen.wanted if seen is not None else None
    why = None
    if spec(pod).get("schedulerName") == SCHEDULER:
        why = (
            _nobody(scheduling)
            or _no_queue(scheduling, pod)
            or _runtime_class(cluster, pod)
            or gpu_capacity.never(scheduling, cluster, pod, team)
            or gpu_capacity.full(scheduling, cluster, pod, team)
        )
    else:
        why = gpu_capacity.too_large(cluster, pod)
    why = why or _said(cluster, pod)
    if why is None and cluster.kai is not None and is_ungrouped(cluster, pod):
        return None  # `pod_groups` says that it has no PodGroup
    if why is None and cluster.age(pod) > _PATIENCE:
        said = condition(pod, "PodScheduled").get("message")
        return (
            f"it has no node, and nothing known says why: {said or 'no event, no condition'}",
            _described(cluster, pod),
            "",
        )
    return why


def _nobody(cluster: ClusterState) -> Why | None:
    """No KAI scheduler is there, or none serves."""
    if "deployments" in cluster.unreadable:
        return None
    there = [cluster.named("deployments", name, KAI_NAMESPACE) for name in cluster.schedulers]
    if any(item is not None and rolled_out(item) for item in there):
        return None
    if cluster.kai is None:
        cause = "it asks for KAI, and no KAI schedules in this cluster"
        return cause, "drop schedulerName, or give the team a KAI: scheduler.mode: virtual", ""
    cause = "no scheduler of KAI serves here"
    return cause, f"mend KAI first: kai-parts of {cluster.name} says what is wrong with it", ""


def _no_queue(cluster: ClusterState, pod: Object) -> Why | None:
    """Its queue is one that the stack declares; whoever writes another is `written_wrong`."""
    name = labels_of(pod).get(QUEUE_LABEL)
    if "queues" in cluster.unreadable or name is None or name not in cluster.wanted.queue_specs:
        return None
    if cluster.named("queues", name):
        return None
    return f"its queue {name} is not there, and the stack declares it", cluster.update, ""


def _runtime_class(cluster: ClusterState, pod: Object) -> Why | None:
    name = spec(pod).get("runtimeClassName")
    if not name or "runtimeclasses" in cluster.unreadable or cluster.named("runtimeclasses", name):
        return None
    known = meaning(f'RuntimeClass "{name}" not found')
    return (
        f"its RuntimeClass {name} is not there",
        cluster.filled_in(known.fix) if known else "drop runtimeClassName",
        "",
    )


def _said(cluster: ClusterState, pod: Object) -> Why | None:
    """What its last events, or its conditions, say in words that are known."""
    said = [str(event.get("message") or "") for event in reversed(cluster.events_of(pod))]
    said.append(str(condition(pod, "PodScheduled").get("message") or ""))
    for text in said:
        known = meaning(text)
        if known is not None:
            return known.cause, cluster.filled_in(known.fix), known.same
    return None


def _described(cluster: ClusterState, pod: Object) -> str:
    where = f"-n {namespace_of(pod)} describe pod {name_of(pod)}"
    return f"look with: `{cluster.kubectl} {where}`"


def _not_started(cluster: ClusterState, pod: Object) -> Why | None:
    """It has a node, and its containers do not start there."""
    for container in status(pod).get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        text = f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
        known = meaning(text)
        if known is not None:
            return known.cause, cluster.filled_in(known.fix), known.same
        if waiting.get("reason") in _CANNOT_START:
            return f"its container does not start: {text}", _described(cluster, pod), ""
    return None
