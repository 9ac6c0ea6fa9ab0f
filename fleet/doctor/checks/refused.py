"""What API servers and nodes refused lately: pods that never came to be, by the events about it."""

from __future__ import annotations

from collections.abc import Iterator

from fleet.doctor.finding import Finding
from fleet.doctor.objects import Object, is_true, name_of, seconds_since, spec, status
from fleet.doctor.seen import Look, Seen
from fleet.doctor.texts import filled, meaning
from policies.model import RESERVED

NAME = "refused"
_REASONS = frozenset({"FailedCreate", "SyncError", "UnexpectedAdmissionError"})
_LATELY = 900.0  # seconds; what was mended is not told for long


def check(look: Look) -> Iterator[Finding]:
    """The controllers that could not make a pod, and the pods that nodes or the host sent back."""
    for cluster in look.clusters:
        said: set[tuple[str, str]] = set()
        for subject, text in [*_events(cluster), *_failed(cluster)]:
            known = meaning(text)
            if known is None or (subject, known.cause) in said:
                continue
            said.add((subject, known.cause))
            fix = filled(
                known.fix,
                key=cluster.wanted.key,
                queues=cluster.wanted.queues_key,
                update=cluster.update,
                kubectl=cluster.kubectl,
            )
            yield cluster.broken(known.name, subject, known.cause, fix)


def _events(cluster: Seen) -> Iterator[tuple[str, str]]:
    for event in cluster.all("events"):
        about = event.get("involvedObject") or {}
        stamp = event.get("lastTimestamp") or event.get("eventTime")
        stamp = stamp or event["metadata"].get("creationTimestamp")
        if event.get("reason") not in _REASONS or seconds_since(stamp, cluster.now) > _LATELY:
            continue
        if about.get("namespace") in RESERVED or _over(cluster, about):
            continue
        kind, name = about.get("kind", "object"), about.get("name", "")
        subject = f"{kind} {name} in namespace {about.get('namespace', '')}"
        yield subject, str(event.get("message") or "")


def _over(cluster: Seen, about: Object) -> bool:
    """Whether the object is gone or came to be all right since."""
    if about.get("kind") != "Pod":
        return False
    pod = cluster.named("pods", str(about.get("name")), about.get("namespace"))
    return pod is None or is_true(pod, "Ready") or status(pod).get("phase") == "Succeeded"


def _failed(cluster: Seen) -> Iterator[tuple[str, str]]:
    """Pods that a node sent back: these have a node, and Failed with a reason."""
    for pod in cluster.user_pods:
        if status(pod).get("phase") == "Failed" and spec(pod).get("nodeName"):
            reason = str(status(pod).get("reason") or "")
            if reason in _REASONS:
                place = pod["metadata"].get("namespace")
                text = f"{reason}: {status(pod).get('message', '')}"
                yield f"pod {name_of(pod)} in namespace {place}", text
