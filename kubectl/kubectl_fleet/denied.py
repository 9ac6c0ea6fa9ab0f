"""Pods that admission denied, by the events of the objects that create them."""

from typing import Any, Final

from kubectl_fleet.cluster import RESERVED, Object, Snapshot, condition, last_seen
from kubectl_fleet.messages import Reason, meaning
from kubectl_fleet.table import plain

_LATELY: Final = 900.0  # seconds
# The last two are KubeRay's, about a RayCluster.
_REASONS: Final = ("FailedCreate", "FailedToCreateHeadPod", "FailedToCreateWorkerPod")
_PLURALS: Final = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets", "Job": "jobs"}


def denied(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return what could not create its pods and still lacks them, the oldest first."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for event in snapshot.all("events"):  # newest first
        about = event.get("involvedObject") or {}
        kind, namespace, name = (str(about.get(key)) for key in ("kind", "namespace", "name"))
        if event.get("reason") not in _REASONS or kind == "Pod" or namespace in RESERVED:
            continue
        owner = snapshot.named(_PLURALS.get(kind, ""), name, namespace)
        if not snapshot.shows(namespace) or _is_over(snapshot, kind, owner, event):
            continue
        look = f"look with: `{snapshot.kubectl} -n {namespace} describe {kind.lower()} {name}`"
        text = plain(event.get("message"))
        reason = meaning([text], snapshot.kubectl) or Reason(text, look)
        # What a person wrote is a ReplicaSet's Deployment.
        for above in (owner["metadata"].get("ownerReferences") or []) if owner else []:
            kind, name = (above["kind"], above["name"]) if above.get("controller") else (kind, name)
        record = {"kind": kind, "name": name, "namespace": namespace, **reason._asdict()}
        since = event.get("firstTimestamp") or last_seen(event)
        found.setdefault((kind, namespace, name), {**record, "since": since})
    return sorted(found.values(), key=lambda each: (each["since"], each["namespace"], each["name"]))


def _is_over(snapshot: Snapshot, kind: str, owner: Object | None, event: Object) -> bool:
    """Return whether the owner is gone or has its pods; of one that can't be seen, if it is old."""
    if _PLURALS.get(kind) not in snapshot.objects:
        return snapshot.seconds_since(last_seen(event)) > _LATELY
    if owner is None:
        return True
    spec, status = owner.get("spec") or {}, owner.get("status") or {}
    ended = any(condition(owner, each).get("status") == "True" for each in ("Complete", "Failed"))
    has = max(status.get(key) or 0 for key in ("replicas", "active", "succeeded"))
    return bool(ended or spec.get("suspend") or has >= spec.get("replicas", 1))
