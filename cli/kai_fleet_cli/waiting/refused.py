"""What API servers and nodes refused lately: pods that never came to be, by what says so.

A pod that admission denies is not there. Its maker has an event, and a ReplicaSet a condition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.kube.objects import KubeObject, seconds_since
from kai_fleet.releases.keys import RESERVED
from kai_fleet_cli.waiting.read_cluster import ClusterPods, ReadCluster

_LATELY: Final = 900.0  # seconds; what was mended is not told for long
# The last two are KubeRay's, about a RayCluster.
_REASONS: Final = frozenset(
    {
        "FailedCreate",
        "SyncError",
        "UnexpectedAdmissionError",
        "FailedToCreateHeadPod",
        "FailedToCreateWorkerPod",
    }
)
# Who makes pods, and says in its status whether it has those that it wants.
MAKERS: Final = {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
    "DaemonSet": "daemonsets",
}


@dataclass(frozen=True)
class Refusal:
    """What was refused to an object, in the words of who refused it. `since` is a time stamp."""

    kind: str
    name: str
    namespace: str
    text: str
    since: str = ""

    @property
    def subject(self) -> str:
        """For example `Job train in namespace default`."""
        kind = "pod" if self.kind == "Pod" else self.kind
        return f"{kind} {self.name} in namespace {self.namespace}"


def refusals(of: ClusterPods, elsewhere: frozenset[str] = frozenset()) -> Iterator[Refusal]:
    """The controllers that could not make a pod, and the pods that nodes or the host sent back.

    `elsewhere` are namespaces that are looked at otherwise.
    """
    cluster, apart = of.cluster, RESERVED | elsewhere
    told = {(it.kind, it.namespace, it.name): it for it in _events(cluster, apart)}
    yield from told.values()
    for maker in cluster.all("replicasets"):
        failure, place = maker.condition("ReplicaFailure"), (maker.namespace, maker.name)
        known = ("ReplicaSet", *place) in told or maker.namespace in apart
        if failure.get("status") == "True" and not known:
            text, since = (str(failure.get(it) or "") for it in ("message", "lastTransitionTime"))
            yield Refusal("ReplicaSet", maker.name, maker.namespace, text, since)
    for pod in of.pods:
        # They stay until somebody deletes them, so old ones say nothing about now.
        reason = str(pod.status.get("reason") or "")
        sent_back = pod.phase == "Failed" and pod.spec.get("nodeName") and reason in _REASONS
        if sent_back and cluster.age(pod) <= _LATELY:
            text = f"{reason}: {pod.status.get('message', '')}"
            yield Refusal("Pod", pod.name, pod.namespace, text)


def _events(cluster: ReadCluster, elsewhere: frozenset[str]) -> Iterator[Refusal]:
    """The last event about each object that is still not as it should be."""
    last: dict[tuple[str, str, str], KubeObject] = {}
    for event in sorted(cluster.all("events"), key=lambda event: event.last_seen):
        about = event.get("involvedObject") or {}
        kind, name = str(about.get("kind", "object")), str(about.get("name", ""))
        namespace = str(about.get("namespace", ""))
        if event.get("reason") in _REASONS and namespace not in elsewhere:
            last[kind, name, namespace] = event
    for (kind, name, namespace), event in last.items():
        if not _over(cluster, kind, name, namespace, event):
            since = str(event.get("firstTimestamp") or event.last_seen)
            yield Refusal(kind, name, namespace, str(event.get("message") or ""), since)


def _over(cluster: ReadCluster, kind: str, name: str, namespace: str, event: KubeObject) -> bool:
    """Whether the object is gone, or came to be all right since."""
    lately = seconds_since(event.last_seen, cluster.now) <= _LATELY
    plural = "pods" if kind == "Pod" else MAKERS.get(kind, "")
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


def owner_of(cluster: ReadCluster, refusal: Refusal) -> tuple[str, str]:
    """The kind and name of what a person wrote: a ReplicaSet's Deployment."""
    maker = cluster.named(MAKERS.get(refusal.kind, ""), refusal.name, refusal.namespace)
    owners: list[dict[str, Any]] = maker["metadata"].get("ownerReferences") or [] if maker else []
    owner = next((it for it in owners if it.get("controller")), None)
    return (str(owner["kind"]), str(owner["name"])) if owner else (refusal.kind, refusal.name)
