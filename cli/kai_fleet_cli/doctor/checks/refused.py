"""What API servers and nodes refused lately: pods that never came to be, by the events about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet.kai.keys import RESERVED
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import meaning
from kai_fleet_cli.doctor.objects import (
    Object,
    is_true,
    name_of,
    namespace_of,
    seconds_since,
    spec,
    status,
    when,
)

NAME = "refused"
_REASONS = frozenset({"FailedCreate", "SyncError", "UnexpectedAdmissionError"})
_LATELY = 900.0  # seconds; what was mended is not told for long
# Who makes pods, and says in its status whether it has those that it wants.
_MAKERS: Final = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "Job": "jobs"}


def check(look: Snapshot) -> Iterator[Finding]:
    """The controllers that could not make a pod, and the pods that nodes or the host sent back."""
    for cluster in look.clusters:
        for subject, text in [*_events(look, cluster), *_failed(look, cluster)]:
            known = meaning(text)
            if known is not None:
                fix = cluster.filled_in(known.fix)
                yield cluster.broken(known.name, subject, known.cause, fix, known.same)


def _events(look: Snapshot, cluster: ClusterState) -> Iterator[tuple[str, str]]:
    """The last word about each object that is still not as it should be."""
    last: dict[tuple[str, str, str], Object] = {}
    for event in sorted(cluster.all("events"), key=when):
        about = event.get("involvedObject") or {}
        kind, name = str(about.get("kind", "object")), str(about.get("name", ""))
        place = str(about.get("namespace", ""))
        if event.get("reason") in _REASONS and place not in RESERVED | look.copied(cluster):
            last[kind, name, place] = event
    for (kind, name, place), event in last.items():
        if not _over(cluster, kind, name, place, event):
            called = "pod" if kind == "Pod" else kind
            yield f"{called} {name} in namespace {place}", str(event.get("message") or "")


def _over(cluster: ClusterState, kind: str, name: str, place: str, event: Object) -> bool:
    """Whether the object is gone, or came to be all right since."""
    lately = seconds_since(when(event), cluster.now) <= _LATELY
    if kind == "Pod":
        pod = cluster.named("pods", name, place)
        well = pod is None or is_true(pod, "Ready") or status(pod).get("phase") == "Succeeded"
        return well or not lately
    plural = _MAKERS.get(kind, "")
    if plural not in cluster.objects:
        return not lately
    maker = cluster.named(plural, name, place)
    return maker is None or _has_its_pods(maker)


def _has_its_pods(maker: Object) -> bool:
    now = status(maker)
    if "replicas" in spec(maker):
        return bool(now.get("replicas", 0) >= spec(maker)["replicas"])
    done = is_true(maker, "Complete") or is_true(maker, "Failed") or spec(maker).get("suspend")
    return bool(done or now.get("active") or now.get("succeeded"))


def _failed(look: Snapshot, cluster: ClusterState) -> Iterator[tuple[str, str]]:
    """Pods that a node sent back: these have a node, and Failed with a reason. They stay until
    somebody deletes them, so old ones say nothing about now.
    """
    for pod in look.own_pods(cluster):
        if status(pod).get("phase") == "Failed" and spec(pod).get("nodeName"):
            reason = str(status(pod).get("reason") or "")
            if reason in _REASONS and cluster.age(pod) <= _LATELY:
                text = f"{reason}: {status(pod).get('message', '')}"
                yield f"pod {name_of(pod)} in namespace {namespace_of(pod)}", text
