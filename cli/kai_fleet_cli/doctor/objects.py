"""Reading parts of Kubernetes objects that may lack any of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

Object: TypeAlias = Mapping[str, Any]


def name_of(item: Object) -> str:
    """An object's name."""
    return str(item["metadata"]["name"])


def namespace_of(item: Object) -> str:
    """An object's namespace, "" for what has none."""
    return str(item["metadata"].get("namespace", ""))


def labels_of(item: Object) -> Mapping[str, str]:
    """An object's labels."""
    return item["metadata"].get("labels") or {}


def annotations_of(item: Object) -> Mapping[str, str]:
    """An object's annotations."""
    return item["metadata"].get("annotations") or {}


def spec(item: Object) -> Mapping[str, Any]:
    """An object's spec."""
    return item.get("spec") or {}


def status(item: Object) -> Mapping[str, Any]:
    """An object's status."""
    return item.get("status") or {}


def condition(item: Object, kind: str) -> Mapping[str, Any]:
    """A condition of an object by its type; empty where there is none."""
    found = (c for c in status(item).get("conditions") or [] if c.get("type") == kind)
    return next(found, {})


def is_true(item: Object, kind: str) -> bool:
    """Whether a condition holds."""
    return condition(item, kind).get("status") == "True"


def containers(item: Object) -> list[Mapping[str, Any]]:
    """The containers of a pod, or of a workload's pod template."""
    pod = spec(item).get("template", {}).get("spec") or spec(item)
    return [*(pod.get("initContainers") or []), *(pod.get("containers") or [])]


def image_tag(item: Object) -> str | None:
    """The tag of the image of an object's first container."""
    images = [str(container.get("image", "")) for container in containers(item)]
    tag = images[0].partition("@")[0].rpartition(":")[2] if images else ""
    return tag if tag and "/" not in tag else None


def pod_subject(pod: Object) -> str:
    """`pod NAME in namespace NAMESPACE`."""
    return f"pod {name_of(pod)} in namespace {namespace_of(pod)}"


def seconds_since(stamp: object, now: datetime) -> float:
    """Seconds from a Kubernetes time stamp until `now`; 0 where there is none."""
    if not isinstance(stamp, str) or not stamp:
        return 0.0
    return (now - datetime.fromisoformat(stamp.replace("Z", "+00:00"))).total_seconds()


def when(event: Object) -> str:
    """When an event happened last, as text that sorts."""
    stamp = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return str(stamp or event["metadata"].get("creationTimestamp") or "")
