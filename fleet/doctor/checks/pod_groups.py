"""PodGroups, which KAI makes for its pods and schedules by; and pods bound in name only."""

from __future__ import annotations

from collections.abc import Iterator

from fleet.doctor.finding import Finding
from fleet.doctor.objects import (
    Object,
    annotations_of,
    is_true,
    name_of,
    namespace_of,
    pod_subject,
    spec,
    status,
)
from fleet.doctor.seen import Look, Seen
from policies.model import KAI_NAMESPACE

NAME = "pod-groups"
BOUND = "false-success"
_GROUP = "pod-group-name"
_SKIP = "kai.scheduler/skip-podgrouper"
_PATIENCE = 30.0


def check(look: Look) -> Iterator[Finding]:
    """Every cluster whose KAI groups the pods in it."""
    for cluster in look.clusters:
        if cluster.kai is None or not cluster.kai_pods:
            continue
        found = [*_groups(cluster), *_bound(cluster)]
        yield from found
        if not found:
            yield cluster.well(NAME, f"{len(cluster.kai_pods)} pods of KAI")


def _groups(cluster: Seen) -> Iterator[Finding]:
    there = {(namespace_of(item), name_of(item)) for item in cluster.all("podgroups")}
    without = [pod for pod in cluster.kai_pods if _waits(cluster, pod)]
    if without:
        first = pod_subject(without[0])
        more = f" and {len(without) - 1} more" if len(without) > 1 else ""
        yield cluster.broken(
            NAME,
            f"{first}{more}",
            "KAI's pod-grouper has made no PodGroup for it, and without one it is not scheduled",
            f"look with: {cluster.kubectl} -n {KAI_NAMESPACE} logs deployment/{_grouper(cluster)}",
        )
    if "podgroups" in cluster.unreadable:
        return
    for pod in cluster.kai_pods:
        group = annotations_of(pod).get(_GROUP)
        if group and (namespace_of(pod), group) not in there and not _done(pod):
            yield cluster.broken(
                NAME,
                pod_subject(pod),
                f"its PodGroup {group} is gone: KAI does not count the pod any more",
                "delete the pod, so that it is made again",
            )


def _waits(cluster: Seen, pod: Object) -> bool:
    return (
        not annotations_of(pod).get(_GROUP)
        and _SKIP not in annotations_of(pod)
        and not _done(pod)
        and cluster.age(pod) > _PATIENCE
    )


def _done(pod: Object) -> bool:
    return status(pod).get("phase") in ("Succeeded", "Failed")


def _grouper(cluster: Seen) -> str:
    parts = cluster.kai.deployments if cluster.kai else ()
    return next((name for name in parts if name in ("pod-grouper", "podgrouper")), "pod-grouper")


def _bound(cluster: Seen) -> Iterator[Finding]:
    """A binder may report success on pods that it failed to bind; the node tells."""
    for pod in cluster.kai_pods:
        if spec(pod).get("nodeName") or status(pod).get("phase") != "Pending":
            continue
        said = is_true(pod, "PodBound") or cluster.events_of(pod, "bound")
        if said:
            yield cluster.broken(
                BOUND,
                pod_subject(pod),
                "KAI's binder says that it bound it, and it has no node: binding failed",
                f"look with: {cluster.kubectl} -n {KAI_NAMESPACE} logs deployment/binder; delete"
                " the pod, so that it is placed anew",
            )
