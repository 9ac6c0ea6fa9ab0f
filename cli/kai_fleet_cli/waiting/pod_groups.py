"""PodGroups, which KAI makes for its pods and schedules by; and pods bound in name only."""

from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.keys import KAI_NAMESPACE, POD_GROUP, SCHEDULER
from kai_fleet.wording import counted
from kai_fleet_cli.waiting.read_cluster import Findings, ReadCluster

BOUND = "false-success"
_SKIP = "kai.scheduler/skip-podgrouper"
_PATIENCE = 30.0  # seconds


def check(cluster: ReadCluster) -> Findings:
    """A cluster whose KAI groups the pods in it."""
    pods = cluster.kai_pods
    if pods:
        problems = (*_groups(cluster, pods), *_bound(cluster, pods))
        yield from cluster.or_well(problems, f"{counted(len(pods), 'pod')} of KAI")


def is_ungrouped(cluster: ReadCluster, pod: KubeObject) -> bool:
    """Whether a pod of KAI should long have a PodGroup, and has none."""
    return (
        pod.spec.get("schedulerName") == SCHEDULER
        and not pod.annotations.get(POD_GROUP)
        and _SKIP not in pod.annotations
        and not pod.ended
        and cluster.age(pod) > _PATIENCE
    )


def _groups(cluster: ReadCluster, pods: list[KubeObject]) -> Findings:
    logs = f"`{cluster.kubectl} -n {KAI_NAMESPACE} logs deployment/{_grouper(cluster)}`"
    for pod in pods:
        if is_ungrouped(cluster, pod):
            yield cluster.broken(
                pod.pod_subject,
                "KAI's pod-grouper has made no PodGroup for it, and without one it is not"
                " scheduled",
                f"look with: {logs}",
            )
    if "podgroups" in cluster.unreadable:
        return
    for pod in pods:
        group = pod.annotations.get(POD_GROUP)
        if group and not pod.ended and not cluster.named("podgroups", group, pod.namespace):
            yield cluster.broken(
                pod.pod_subject,
                "its PodGroup is gone: KAI does not count the pod any more",
                f"{cluster.delete_pods([pod])}, so that it is made again",
            )


def _grouper(cluster: ReadCluster) -> str:
    parts = cluster.kai.deployments if cluster.kai else ()
    return next((name for name in parts if name in ("pod-grouper", "podgrouper")), "pod-grouper")


def _bound(cluster: ReadCluster, pods: list[KubeObject]) -> Findings:
    """A binder may report success on pods that it failed to bind; the node tells."""
    for pod in pods:
        if pod.spec.get("nodeName") or pod.phase != "Pending":
            continue
        if pod.is_true("PodBound") or cluster.events_of(pod, "bound"):
            yield cluster.broken(
                pod.pod_subject,
                "KAI's binder says that it bound it, and it has no node: binding failed",
                f"{cluster.delete_pods([pod])}, so that it is placed anew; why it failed says"
                f" `{cluster.kubectl} -n {KAI_NAMESPACE} logs deployment/binder`",
                check=BOUND,
            )
