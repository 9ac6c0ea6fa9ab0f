"""PodGroups, which KAI makes for its pods and schedules by; and pods bound in name only."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.kai.keys import KAI_NAMESPACE, POD_GROUP, SCHEDULER
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import (
    Object,
    annotations_of,
    is_true,
    name_of,
    namespace_of,
    pod_subject,
    spec,
    status,
)

NAME = "pod-groups"
BOUND = "false-success"
_SKIP = "kai.scheduler/skip-podgrouper"
_PATIENCE = 30.0


def check(look: Snapshot) -> Iterator[Finding]:
    """Every cluster whose KAI groups the pods in it."""
    for cluster in look.with_kai:
        if not cluster.kai_pods:
            continue
        found = [*_groups(cluster), *_bound(cluster)]
        yield from found
        if not found:
            yield cluster.well(NAME, f"{len(cluster.kai_pods)} pods of KAI")


def _groups(cluster: ClusterState) -> Iterator[Finding]:
    there = {(namespace_of(item), name_of(item)) for item in cluster.all("podgroups")}
    without = [pod for pod in cluster.kai_pods if is_ungrouped(cluster, pod)]
    for pod in without:
        yield cluster.broken(
            NAME,
            pod_subject(pod),
            "KAI's pod-grouper has made no PodGroup for it, and without one it is not scheduled",
            f"look with: `{cluster.kubectl} -n {KAI_NAMESPACE} logs"
            f" deployment/{_grouper(cluster)}`",
        )
    if "podgroups" in cluster.unreadable:
        return
    for pod in cluster.kai_pods:
        group = annotations_of(pod).get(POD_GROUP)
        if group and (namespace_of(pod), group) not in there and not _done(pod):
            yield cluster.broken(
                NAME,
                pod_subject(pod),
                "its PodGroup is gone: KAI does not count the pod any more",
                f"{cluster.deleted([pod])}, so that it is made again",
            )


def is_ungrouped(cluster: ClusterState, pod: Object) -> bool:
    """Whether a pod of KAI should long have a PodGroup, and has none."""
    return (
        spec(pod).get("schedulerName") == SCHEDULER
        and not annotations_of(pod).get(POD_GROUP)
        and _SKIP not in annotations_of(pod)
        and not _done(pod)
        and cluster.age(pod) > _PATIENCE
    )


def _done(pod: Object) -> bool:
    return status(pod).get("phase") in ("Succeeded", "Failed")


def _grouper(cluster: ClusterState) -> str:
    parts = cluster.kai.deployments if cluster.kai else ()
    return next((name for name in parts if name in ("pod-grouper", "podgrouper")), "pod-grouper")


def _bound(cluster: ClusterState) -> Iterator[Finding]:
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
                f"{cluster.deleted([pod])}, so that it is placed anew; why it failed says"
                f" `{cluster.kubectl} -n {KAI_NAMESPACE} logs deployment/binder`",
            )
