"""Waiting as the official plugin does: until an object is ready, until it is gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from sandbox.control_plane.kube_api import Object
from sandbox.nodes.fake_nodes import holds
from sandbox.providers.cluster import Cluster, Kind

SECONDS: Final = 600.0
_PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"


class UnreadyError(Exception):
    """An object is there, and not as it was waited for. `live` is its last state."""

    def __init__(self, text: str, live: Object, *reasons: str) -> None:
        super().__init__(text)
        self.live, self.reasons = live, reasons


class FailedError(Exception):
    """An object can no longer become ready."""


def _annotation(obj: Object, key: str) -> str:
    found = (obj.get("metadata") or {}).get("annotations")
    return str(found.get(key) or "") if isinstance(found, dict) else ""


def propagation(inputs: Object) -> str:
    """How a deletion treats what the object owns."""
    return _annotation(inputs, _PROPAGATION).capitalize() or "Foreground"


class Wait:
    """One wait for one object: how long, and who hears what is missing."""

    def __init__(
        self,
        cluster: Cluster,
        inputs: Object,
        seconds: float,
        say: Callable[[str], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._cluster, self._say, self._cancelled = cluster, say, cancelled
        given = _annotation(inputs, "pulumi.com/timeoutSeconds")
        self._seconds = seconds or (float(given) if given.isdigit() else SECONDS)
        self._skipped = _annotation(inputs, "pulumi.com/skipAwait") == "true"

    def until_ready(self, kind: Kind, live: Object) -> Object:
        """The live object once it is ready. Raises UnreadyError."""
        check = _READY.get((kind.group, kind.name))
        if check is None or self._skipped:
            return live
        name, namespace = live["metadata"]["name"], live["metadata"].get("namespace", "")

        def look() -> tuple[str, Object]:
            found = self._cluster.live(kind, namespace, name)
            if found is None:
                raise UnreadyError(f"'{name}' was deleted while it was waited for", live)
            try:
                return check(found, self._cluster), found
            except FailedError as why:
                text = f"Resource '{name}' was created but failed to initialize"
                raise UnreadyError(text, found, str(why)) from None

        return self._until(name, look)

    def until_gone(self, kind: Kind, namespace: str, name: str, uid: str | None) -> None:
        """Return once the object of that uid is gone. Raises UnreadyError."""

        def look() -> tuple[str, Object]:
            live = self._cluster.live(kind, namespace, name)
            gone = live is None or (uid and live["metadata"].get("uid") != uid)
            return ("", {}) if live is None or gone else (_held(live), live)

        if not self._skipped:
            self._until(name, look)

    def _until(self, name: str, look: Callable[[], tuple[str, Object]]) -> Object:
        """Look until nothing is lacking, and say what is."""
        said, began = "", time.monotonic()
        while True:
            lacks, live = look()
            if not lacks:
                return live
            if lacks != said:
                self._say(lacks)
                said = lacks
            passed = time.monotonic() - began
            if self._cancelled():
                raise UnreadyError(f'Resource operation was cancelled for "{name}"', live, lacks)
            if passed > self._seconds:
                raise UnreadyError(f"'{name}' timed out waiting to be Ready", live, lacks)
            time.sleep(min(0.1 + passed / 25, 2.0))


def _held(live: Object) -> str:
    """What keeps an object that is being deleted."""
    said = [str(it["message"]) for it in _conditions(live).values() if it.get("message")]
    if finalizers := live["metadata"].get("finalizers"):
        said.append(f"finalizers might be preventing deletion: {json.dumps(finalizers)}")
    return "; ".join(said) or "waiting for deletion"


def _conditions(live: Object) -> dict[str, dict[str, Any]]:
    listed = (live.get("status") or {}).get("conditions") or []
    return {str(entry.get("type")): entry for entry in listed}


def _observed(live: Object) -> bool:
    seen = (live.get("status") or {}).get("observedGeneration", 0)
    return bool(seen >= live["metadata"].get("generation", 0))


def _deployment(live: Object, _: Cluster) -> str:
    progressing = _conditions(live).get("Progressing", {})
    if progressing.get("reason") == "ProgressDeadlineExceeded" and _observed(live):
        raise FailedError(f"[ProgressDeadlineExceeded] {progressing.get('message')}")
    wanted, status = (live.get("spec") or {}).get("replicas", 1), live.get("status") or {}
    there = min(status.get(f"{which}Replicas", 0) for which in ("updated", "available"))
    return "" if _observed(live) and there >= wanted else f"{there}/{wanted} Pods available"


def _pod(live: Object, _: Cluster) -> str:
    status, found = live.get("status") or {}, _conditions(live)
    if status.get("phase") == "Succeeded" or holds(live, "Ready"):
        return ""
    said = [found.get(name, {}).get("message") for name in ("PodScheduled", "Ready")]
    return next((str(text) for text in said if text), f"phase {status.get('phase')}")


def _job(live: Object, _: Cluster) -> str:
    failed = _conditions(live).get("Failed", {})
    if failed.get("status") == "True":
        raise FailedError(f"Job failed: [{failed.get('reason')}] {failed.get('message')}")
    return "" if holds(live, "Complete") else "Job has not completed"


def _crd(live: Object, _: Cluster) -> str:
    return "" if holds(live, "Established") else "CRD is not established"


def _quota(live: Object, _: Cluster) -> str:
    same = (live.get("status") or {}).get("hard") == (live.get("spec") or {}).get("hard")
    return "" if same else "quotas do not match yet"


def _service(live: Object, cluster: Cluster) -> str:
    """A Service waits for its address, and for a Pod unless it is headless or selects none."""
    spec, metadata = live.get("spec") or {}, live["metadata"]
    ingress = ((live.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if spec.get("type") == "LoadBalancer" and not ingress:
        return "Service was not allocated an IP address"
    if spec.get("clusterIP") == "None" or not spec.get("selector"):
        return ""
    endpoints = cluster.live(Kind("v1", "Endpoints"), metadata["namespace"], metadata["name"])
    subsets = (endpoints or {}).get("subsets") or []
    reached = any(it.get("addresses") for it in subsets) and not any(
        it.get("notReadyAddresses") for it in subsets
    )
    return "" if reached else "Service does not target any Pods. Selected Pods may not be ready"


def _token(live: Object, _: Cluster) -> str:
    waits = live.get("type") == "kubernetes.io/service-account-token" and not live.get("data")
    return "the account's token is not there yet" if waits else ""


# What an object still lacks, in words; "" once it is ready.
_READY: Final[dict[tuple[str, str], Callable[[Object, Cluster], str]]] = {
    ("", "Pod"): _pod,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _token,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apps", "Deployment"): _deployment,
    ("batch", "Job"): _job,
}
