"""Waiting: until an object is ready, until it is gone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any, Final

from provider.plugin import PluginError

from . import naming, wait_for
from .kinds import Kind
from .objects import CRD, Objects

DEFAULT_SECONDS: Final = 600.0

# What an object still lacks, in words; "" once it is ready.
Check = Callable[[dict[str, Any]], str]


class NotReadyError(PluginError):
    """The object exists and did not become ready in time. `live` is its last state."""

    def __init__(self, message: str, live: dict[str, Any]) -> None:
        super().__init__(message)
        self.live = live


class FailedError(PluginError):
    """The object can no longer become ready, as a Job that failed."""


def timeout(obj: dict[str, Any], custom: float) -> float:
    """Seconds to wait: the resource's `custom_timeouts`, its annotation, or ten minutes."""
    if custom:
        return custom
    given = naming.annotation(obj, "pulumi.com/timeoutSeconds")
    return float(given) if given.isdigit() else DEFAULT_SECONDS


def skipped(obj: dict[str, Any]) -> bool:
    """Whether the object's annotation says not to wait for it."""
    return naming.annotation(obj, "pulumi.com/skipAwait") == "true"


def conditions(live: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The object's status conditions by type."""
    listed = (live.get("status") or {}).get("conditions") or []
    return {str(entry.get("type")): entry for entry in listed}


def _holds(live: dict[str, Any], name: str) -> bool:
    return conditions(live).get(name, {}).get("status") == "True"


def _observed(live: dict[str, Any]) -> bool:
    generation = naming.metadata(live).get("generation", 0)
    return bool((live.get("status") or {}).get("observedGeneration", 0) >= generation)


def _replicas(live: dict[str, Any], *counts: str) -> str:
    wanted = (live.get("spec") or {}).get("replicas", 1)
    status = live.get("status") or {}
    if not _observed(live):
        return "its controller has not seen it yet"
    for count in counts:
        if status.get(count, 0) < wanted:
            return f"{status.get(count, 0)} of {wanted} {count}"
    return ""


def _deployment(live: dict[str, Any]) -> str:
    progressing = conditions(live).get("Progressing", {})
    if progressing.get("reason") == "ProgressDeadlineExceeded" and _observed(live):
        raise FailedError(str(progressing.get("message")))
    return _replicas(live, "updatedReplicas", "availableReplicas")


def _stateful_set(live: dict[str, Any]) -> str:
    if (live.get("spec") or {}).get("updateStrategy", {}).get("type") == "OnDelete":
        return _replicas(live, "readyReplicas")
    return _replicas(live, "updatedReplicas", "readyReplicas")


def _daemon_set(live: dict[str, Any]) -> str:
    status = live.get("status") or {}
    wanted = status.get("desiredNumberScheduled", 0)
    if not _observed(live):
        return "its controller has not seen it yet"
    ready, updated = status.get("numberReady", 0), status.get("updatedNumberScheduled", 0)
    return "" if min(ready, updated) >= wanted else f"{ready} of {wanted} pods ready"


def _pod(live: dict[str, Any]) -> str:
    status = live.get("status") or {}
    if status.get("phase") == "Succeeded" or _holds(live, "Ready"):
        return ""
    found = conditions(live)
    for name in ("PodScheduled", "Ready"):
        if found.get(name, {}).get("status") == "False" and found[name].get("message"):
            return str(found[name]["message"])
    return f"phase {status.get('phase', 'Pending')}"


def _job(live: dict[str, Any]) -> str:
    failed = conditions(live).get("Failed", {})
    if failed.get("status") == "True":
        raise FailedError(f"{failed.get('reason')}: {failed.get('message')}")
    return "" if _holds(live, "Complete") else "its pods have not succeeded yet"


def _crd(live: dict[str, Any]) -> str:
    refused = conditions(live).get("NamesAccepted", {})
    if refused.get("status") == "False":
        return str(refused.get("message"))
    return "" if _holds(live, "Established") else "not established yet"


def _quota(live: dict[str, Any]) -> str:
    hard = (live.get("spec") or {}).get("hard")
    same = (live.get("status") or {}).get("hard") == hard
    return "" if same or not hard else "its controller has not taken over spec.hard yet"


_READY: Final[dict[tuple[str, str], Check]] = {
    ("", "Pod"): _pod,
    ("", "ResourceQuota"): _quota,
    ("apiextensions.k8s.io", CRD): _crd,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
}


def _ready_check(inputs: dict[str, Any], kind: Kind) -> Check | None:
    if skipped(inputs):
        return None
    if given := naming.annotation(inputs, "pulumi.com/waitFor"):
        return wait_for.check(given)
    found = _READY.get((kind.group, kind.name))
    if found is None and os.environ.get("PULUMI_K8S_AWAIT_ALL") == "true":
        return lambda live: (
            "" if "Ready" not in conditions(live) or _holds(live, "Ready") else "not Ready yet"
        )
    return found


def _pauses() -> Callable[[], float]:
    began = time.monotonic()
    return lambda: min(0.1 + (time.monotonic() - began) / 25, 2.0)


def until_ready(
    objects: Objects,
    inputs: dict[str, Any],
    live: dict[str, Any],
    kind: Kind,
    seconds: float,
    cancelled: Callable[[], bool],
    waiting: Callable[[str], None],
) -> dict[str, Any]:
    """The live object once it is ready. Raises NotReadyError with what it lacks."""
    check = _ready_check(inputs, kind)
    if check is None:
        return live
    namespace, name = naming.namespace_of(live), naming.name_of(live)
    called = f"{kind.name} {naming.identity(namespace, name)}"
    deadline, pause, told = time.monotonic() + seconds, _pauses(), ""
    while True:
        try:
            lacks = check(live)
        except FailedError as error:
            raise NotReadyError(f"{called} failed: {error}", live) from None
        if not lacks:
            return live
        if time.monotonic() > deadline:
            raise NotReadyError(f"{called} is not ready after {seconds:.0f} s: {lacks}", live)
        if cancelled():
            raise NotReadyError(f"{called}: cancelled while it was not ready: {lacks}", live)
        if lacks != told:
            waiting(f"waiting for {called}: {lacks}")
            told = lacks
        time.sleep(pause())
        found = objects.read(kind, namespace, name)
        if found is None:
            raise NotReadyError(f"{called} was deleted while it was waited for", live)
        live = found


def until_gone(
    objects: Objects,
    kind: Kind,
    namespace: str,
    name: str,
    uid: str,
    seconds: float,
    cancelled: Callable[[], bool],
    waiting: Callable[[str], None],
) -> None:
    """Returns once the object with `uid` is gone; else says what holds it."""
    called = f"{kind.name} {naming.identity(namespace, name)}"
    deadline, pause, told = time.monotonic() + seconds, _pauses(), ""
    while True:
        live = objects.read(kind, namespace, name)
        if live is None or naming.metadata(live).get("uid") != uid:
            return
        held = _held(live)
        if time.monotonic() > deadline or cancelled():
            end = "cancelled" if cancelled() else f"still there after {seconds:.0f} s"
            raise NotReadyError(f"{called} is being deleted and is {end}: {held}", live)
        if held != told:
            waiting(f"waiting until {called} is gone: {held}")
            told = held
        time.sleep(pause())


def _held(live: dict[str, Any]) -> str:
    parts = []
    if finalizers := naming.metadata(live).get("finalizers"):
        parts.append(f"its finalizers {json.dumps(finalizers)} are not done")
    for condition in conditions(live).values():
        # A terminating namespace says here what it still contains.
        if condition.get("status") == "True" and condition.get("message"):
            parts.append(str(condition["message"]))
    return "; ".join(parts) or "the server has not removed it yet"
