"""Pods that wait, are written so that KAI does nothing with them, or could not be made."""

from collections.abc import Iterator
from typing import Any, Final

from kai_fleet.gpu_providers import GPU_CHARTS
from kai_fleet.kube.objects import KubeObject, seconds_since
from kai_fleet.releases.keys import POD_GROUP, QUEUE_LABEL, right_key
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.checks.why import why
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot

_LATELY: Final = 900.0  # seconds; what was repaired is not reported for long
# The last two are KubeRay's, about a RayCluster.
_REFUSED: Final = frozenset(
    {
        *("FailedCreate", "SyncError", "UnexpectedAdmissionError"),
        *("FailedToCreateHeadPod", "FailedToCreateWorkerPod"),
    }
)


def waiting(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Why each pod waits."""
    return filter(None, (why(pod, cluster, snapshot) for pod in snapshot.pods(cluster)))


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
    for pod in cluster.kai_pods:
        group = pod.annotations.get(POD_GROUP)
        if group and not pod.ended and not cluster.named("podgroups", group, pod.namespace):
            yield fault("pod-group-gone", cluster, pod.namespaced_name)


def refused(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Pods that API servers or nodes refused lately, by the events of what makes them.

    A pod that admission denies is not there. Its maker has an event, and a ReplicaSet a condition.
    """
    texts: dict[tuple[str, str, str], str] = {}
    for maker in cluster.all("replicasets"):
        failure = maker.condition("ReplicaFailure")
        if failure.get("status") == "True":
            place = ("ReplicaSet", maker.namespace, maker.name)
            texts[place] = str(failure.get("message") or "")
    for event in sorted(cluster.all("events"), key=lambda event: event.last_seen):
        about: dict[str, Any] = event.get("involvedObject") or {}
        kind, namespace = str(about.get("kind")), str(about.get("namespace", ""))
        name = str(about.get("name"))
        if event.get("reason") in _REFUSED and not _is_over(cluster, kind, namespace, name, event):
            texts[kind, namespace, name] = str(event.get("message") or "")
    for pod in snapshot.pods(cluster):
        reason = str(pod.status.get("reason") or "")
        if pod.phase == "Failed" and reason in _REFUSED and cluster.age(pod) <= _LATELY:
            text = f"{reason}: {pod.status.get('message', '')}"
            texts["Pod", pod.namespace, pod.name] = text
    apart = GPU_CHARTS | snapshot.apart(cluster)
    for (kind, namespace, name), text in texts.items():
        known = explain(cluster, kind, f"{namespace}/{name}", [text])
        if known is not None and namespace not in apart:
            yield known


def _is_over(cluster: Cluster, kind: str, namespace: str, name: str, event: KubeObject) -> bool:
    """Whether the object is gone, or has what it wants by now."""
    late = seconds_since(event.last_seen, cluster.now) > _LATELY
    kinds = f"{kind.lower()}s"
    if kinds not in cluster.objects:
        return late
    item = cluster.named(kinds, name, namespace)
    if item is None or kind == "Pod":
        return item is None or late or item.is_true("Ready") or item.phase == "Succeeded"
    now, spec = item.status, item.spec
    for pods, want in (
        ("currentNumberScheduled", now.get("desiredNumberScheduled")),
        ("replicas", spec.get("replicas")),
    ):
        if want is not None:
            return bool(now.get(pods, 0) >= want)
    done = item.is_true("Complete") or item.is_true("Failed") or spec.get("suspend")
    return bool(done or now.get("active") or now.get("succeeded"))
