"""What API servers and nodes refused lately: pods that never came to be, by the events about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet_cli.doctor.checks.kai.gpu_sharing import GPU_STACK
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kubectl_fleet.live.objects import KubeObject, seconds_since
from kubectl_fleet.releases.keys import RESERVED

_REASONS: Final = frozenset({"FailedCreate", "SyncError", "UnexpectedAdmissionError"})
_LATELY = 900.0  # seconds; what was mended is not told for long
# Who makes pods, and says in its status whether it has those that it wants.
_MAKERS: Final = {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
    "DaemonSet": "daemonsets",
}


def check(snapshot: Snapshot) -> Findings:
    """The controllers that could not make a pod, and the pods that nodes or the host sent back.

    Each finding has the name of what its message means.
    """
    for cluster in snapshot.clusters:
        for subject, text in (*_events(snapshot, cluster), *_failed(snapshot, cluster)):
            if (reason := cluster.explain(text)) is not None:
                yield cluster.broken(subject, *reason)


def _events(snapshot: Snapshot, cluster: ClusterState) -> Iterator[tuple[str, str]]:
    """The last event about each object that is still not as it should be."""
    last: dict[tuple[str, str, str], KubeObject] = {}
    elsewhere = RESERVED | GPU_STACK | snapshot.copied(cluster)
    for event in sorted(cluster.all("events"), key=lambda event: event.last_seen):
        about = event.get("involvedObject") or {}
        kind, name = str(about.get("kind", "object")), str(about.get("name", ""))
        namespace = str(about.get("namespace", ""))
        if event.get("reason") in _REASONS and namespace not in elsewhere:
            last[kind, name, namespace] = event
    for (kind, name, namespace), event in last.items():
        if not _over(cluster, kind, name, namespace, event):
            subject = f"{'pod' if kind == 'Pod' else kind} {name} in namespace {namespace}"
            yield subject, str(event.get("message") or "")


def _over(cluster: ClusterState, kind: str, name: str, namespace: str, event: KubeObject) -> bool:
    """Whether the object is gone, or came to be all right since."""
    lately = seconds_since(event.last_seen, cluster.now) <= _LATELY
    plural = "pods" if kind == "Pod" else _MAKERS.get(kind, "")
    if kind != "Pod" and plural not in cluster.objects:
        return not lately
    item = cluster.named(plural, name, namespace)
    if item is None:
        return True
    if kind == "Pod":
        return not lately or item.is_true("Ready") or item.phase == "Succeeded"
    return _has_its_pods(item)


def _has_its_pods(maker: KubeObject) -> bool:
    now, spec = maker.status, maker.spec
    if "desiredNumberScheduled" in now:
        return bool(now.get("currentNumberScheduled", 0) >= now["desiredNumberScheduled"])
    if "replicas" in spec:
        return bool(now.get("replicas", 0) >= spec["replicas"])
    done = maker.is_true("Complete") or maker.is_true("Failed") or spec.get("suspend")
    return bool(done or now.get("active") or now.get("succeeded"))


def _failed(snapshot: Snapshot, cluster: ClusterState) -> Iterator[tuple[str, str]]:
    """Pods that a node sent back: these have a node, and Failed with a reason. They stay until
    somebody deletes them, so old ones say nothing about now.
    """
    for pod in snapshot.own_pods(cluster):
        reason = str(pod.status.get("reason") or "")
        sent_back = pod.phase == "Failed" and pod.spec.get("nodeName") and reason in _REASONS
        if sent_back and cluster.age(pod) <= _LATELY:
            yield pod.pod_subject, f"{reason}: {pod.status.get('message', '')}"
