"""Pods that wait: why, in words. What is wrong with how they are written is `written_wrong`'s."""

from __future__ import annotations

from collections.abc import Iterator

from components.settings.quantities import parse_quantity
from fleet.doctor.checks.kai_parts import rolled_out
from fleet.doctor.checks.nodes import gpus, ready
from fleet.doctor.checks.written_wrong import wrong
from fleet.doctor.finding import Finding
from fleet.doctor.objects import (
    Object,
    annotations_of,
    condition,
    containers,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    pod_subject,
    spec,
    status,
)
from fleet.doctor.seen import Look, Seen
from fleet.doctor.texts import filled, meaning
from policies.model import KAI_NAMESPACE, QUEUE_LABEL, SCHEDULER

NAME = "pending"
_PATIENCE = 60.0  # what takes no longer is on its way
_UNLIMITED = -1


def check(look: Look) -> Iterator[Finding]:
    """Every pod without a node that is well written."""
    for cluster in look.clusters:
        for pod in cluster.user_pods:
            if status(pod).get("phase") != "Pending" or pod["metadata"].get("deletionTimestamp"):
                continue
            if spec(pod).get("nodeName"):
                yield from _not_started(cluster, pod)
            elif not is_true(pod, "PodBound") and wrong(look, cluster, pod) is None:
                yield from _not_placed(look.scheduling(cluster), cluster, pod)


def _not_placed(scheduling: Seen, cluster: Seen, pod: Object) -> Iterator[Finding]:
    cause = None
    if spec(pod).get("schedulerName") == SCHEDULER:
        cause = _nobody(scheduling) or _runtime_class(cluster, pod) or _full(scheduling, pod)
    cause = cause or _said(cluster, pod) or _too_large(cluster, pod)
    if cause is None and cluster.age(pod) > _PATIENCE:
        said = condition(pod, "PodScheduled").get("message")
        cause = (
            f"it has no node, and nothing known says why: {said or 'no event, no condition'}",
            f"look with: {cluster.kubectl} -n {namespace_of(pod)} describe pod {name_of(pod)}",
        )
    if cause is not None:
        yield cluster.broken(NAME, pod_subject(pod), *cause)


def _nobody(cluster: Seen) -> tuple[str, str] | None:
    """No KAI scheduler is there, or none serves."""
    if "deployments" in cluster.unreadable:
        return None
    there = [cluster.named("deployments", name, KAI_NAMESPACE) for name in cluster.schedulers]
    if any(item is not None and rolled_out(item) for item in there):
        return None
    if cluster.kai is None:
        cause = "it asks for KAI, and no KAI schedules in this cluster"
        return cause, "drop schedulerName, or give the team a KAI: scheduler.mode: virtual"
    return "no scheduler of KAI serves here", cluster.update


def _runtime_class(cluster: Seen, pod: Object) -> tuple[str, str] | None:
    name = spec(pod).get("runtimeClassName")
    if not name or "runtimeclasses" in cluster.unreadable or cluster.named("runtimeclasses", name):
        return None
    return (
        f"its RuntimeClass {name} is not there",
        "set kai-fleet:gpu.provider to operator or device-plugin, or drop runtimeClassName",
    )


def _full(cluster: Seen, pod: Object) -> tuple[str, str] | None:
    """Its queue, or one above it, has no GPU left that it may give."""
    asked = asked_gpus(pod, cluster.wanted.gpu_resource)
    by_name = {name_of(item): item for item in cluster.all("queues")}
    name: str | None = labels_of(pod).get(QUEUE_LABEL)
    above: set[str] = set()
    while asked and name in by_name and name not in above:
        above.add(str(name))
        share = (spec(by_name[str(name)]).get("resources") or {}).get("gpu") or {}
        limit = float(share.get("limit", 0))
        held = _held(cluster, str(name))
        if limit != _UNLIMITED and held + asked > limit + 1e-6:
            return (
                f"it asks for {asked:g} GPUs, and queue {name} holds {held:g} of at most {limit:g}",
                "wait for a pod of that queue to end, ask for less, or raise gpu.limit of"
                f" {name} at {cluster.wanted.queues_key}",
            )
        name = spec(by_name[str(name)]).get("parentQueue")
    return None


def _held(cluster: Seen, queue: str) -> float:
    """The GPUs of the pods that run in a queue and below it."""
    below, children = {queue}, True
    while children:
        found = {
            name_of(item)
            for item in cluster.all("queues")
            if spec(item).get("parentQueue") in below and name_of(item) not in below
        }
        below, children = below | found, bool(found)
    return sum(
        asked_gpus(pod, cluster.wanted.gpu_resource)
        for pod in cluster.kai_pods
        if labels_of(pod).get(QUEUE_LABEL) in below
        and spec(pod).get("nodeName")
        and status(pod).get("phase") in ("Pending", "Running")
    )


def asked_gpus(pod: Object, resource: str) -> float:
    """The GPUs that a pod asks for: whole ones, or its fraction of as many as it names."""
    try:
        fraction = float(annotations_of(pod).get("gpu-fraction", 0))
        count = float(annotations_of(pod).get("gpu-fraction-num-devices", 1))
    except ValueError:
        fraction = count = 0.0
    whole = 0.0
    for container in containers(pod):
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        whole += float(parse_quantity(asked.get(resource, 0)))
    return whole or fraction * count


def _said(cluster: Seen, pod: Object) -> tuple[str, str] | None:
    """What its last events, or its conditions, say in words that are known."""
    said = [str(event.get("message") or "") for event in reversed(cluster.events_of(pod))]
    said.append(str(condition(pod, "PodScheduled").get("message") or ""))
    for text in said:
        known = meaning(text)
        if known is not None:
            return known.cause, _filled(cluster, known.fix)
    return None


def _filled(cluster: Seen, fix: str) -> str:
    return filled(
        fix,
        key=cluster.wanted.key,
        queues=cluster.wanted.queues_key,
        update=cluster.update,
        kubectl=cluster.kubectl,
    )


def _too_large(cluster: Seen, pod: Object) -> tuple[str, str] | None:
    """No node has as many GPUs as it asks for, even empty."""
    resource = cluster.wanted.gpu_resource
    asked = asked_gpus(pod, resource)
    most = max((gpus(node, resource) for node in cluster.all("nodes") if ready(node)), default=0.0)
    if not asked or "nodes" in cluster.unreadable or asked <= most:
        return None
    return (
        f"it asks for {asked:g} GPUs, and no Ready node has more than {most:g}",
        "ask for less in one pod, or add larger nodes to the pool",
    )


def _not_started(cluster: Seen, pod: Object) -> Iterator[Finding]:
    """It has a node, and its containers do not start there."""
    for container in status(pod).get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        text = f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()
        known = meaning(text)
        if known is not None:
            yield cluster.broken(NAME, pod_subject(pod), known.cause, _filled(cluster, known.fix))
            return
        if waiting.get("reason") in ("ImagePullBackOff", "ErrImagePull", "CreateContainerError"):
            yield cluster.broken(
                NAME,
                pod_subject(pod),
                f"its container does not start: {text}",
                f"look with: {cluster.kubectl} -n {namespace_of(pod)} describe pod {name_of(pod)}",
            )
            return
