"""Kubernetes objects as JSON; absent fields read as empty, except `metadata` and its `name`.

No function changes an object; labels, annotations, specs and so on are the object's own parts, no
copies. Texts are as the API server sends them, with control characters if it sends any.

A malformed object, which a tenant's API server may list, raises KeyError, TypeError,
AttributeError, ValueError or ArithmeticError, here and in all modules of this package.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Object = Mapping[str, Any]


class Involved(NamedTuple):
    """The object that an event is about; "" for what the event does not say."""

    kind: str
    namespace: str
    name: str


def name_of(item: Object) -> str:
    """The name of an object. Raises KeyError without one, TypeError if it is no text."""
    name = item["metadata"]["name"]
    if not isinstance(name, str):
        raise TypeError("the name of an object is no text")
    return name


def namespace_of(item: Object) -> str:
    """The namespace of an object; "" for a cluster-wide one."""
    metadata = item["metadata"]
    return str(metadata.get("namespace") or "")


def labels_of(item: Object) -> Mapping[str, str]:
    """The labels of an object."""
    metadata = item["metadata"]
    return metadata.get("labels") or {}


def annotations_of(item: Object) -> Mapping[str, str]:
    """The annotations of an object."""
    metadata = item["metadata"]
    return metadata.get("annotations") or {}


def spec_of(item: Object) -> Object:
    """The spec of an object."""
    return item.get("spec") or {}


def status_of(item: Object) -> Object:
    """The status of an object."""
    return item.get("status") or {}


def condition(item: Object, type_: str) -> Object:
    """The first condition of an object that has this type; empty if there is none."""
    conditions: Iterable[Object] = status_of(item).get("conditions") or ()
    for found in conditions:
        if found.get("type") == type_:
            return found
    return {}


def is_true(item: Object, type_: str) -> bool:
    """Whether the condition of this type has the status True; False without that condition."""
    status = condition(item, type_).get("status")
    return bool(status == "True")


def is_cordoned(node: Object) -> bool:
    """Whether a node takes no new pods because somebody cordoned it."""
    spec = spec_of(node)
    return bool(spec.get("unschedulable"))


def takes_pods(node: Object) -> bool:
    """Whether a node is Ready and not cordoned. Its taints do not count."""
    return is_true(node, "Ready") and not is_cordoned(node)


def has_labels(item: Object, labels: Mapping[str, str]) -> bool:
    """Whether an object has all these labels with these values, as a node of a pool does.

    True for no labels.
    """
    labels_of_item = labels_of(item)
    return labels.items() <= labels_of_item.items()


def phase_of(pod: Object) -> str:
    """The phase of a pod, Pending if its status has none."""
    status = status_of(pod)
    return str(status.get("phase") or "Pending")


def has_ended(pod: Object) -> bool:
    """Whether a pod has terminated, by its phase: it holds nothing any more.

    One that is being deleted has not, until its phase says so.
    """
    return phase_of(pod) in ("Succeeded", "Failed")


def waiting_containers(pod: Object) -> Iterator[str]:
    """`REASON MESSAGE` of each container of a pod that waits to start, init containers first.

    Without a reason it is the message alone, and the other way round. One whose state `waiting` is
    empty is left out.
    """
    status = status_of(pod)
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or ():
            state = container.get("state") or {}
            waiting = state.get("waiting")
            if waiting:
                yield f"{waiting.get('reason', '')} {waiting.get('message', '')}".strip()


def involved_in(event: Object) -> Involved:
    """The object that an event is about."""
    involved = event.get("involvedObject") or {}
    return Involved(*[str(involved.get(key) or "") for key in Involved._fields])


def controller_of(item: Object) -> Object:
    """The reference to the owner that controls an object, as a pod's Job; empty without one."""
    owners: Iterable[Object] = item["metadata"].get("ownerReferences") or ()
    for owner in owners:
        if owner.get("controller"):
            return owner
    return {}


def last_seen(event: Object) -> str:
    """The time stamp of an event's last occurrence, as text; stamps sort as text.

    The first that is there of lastTimestamp, eventTime, firstTimestamp and creationTimestamp; ""
    without any. `series` is not read: of an event with one, whose lastTimestamp may be null, it is
    the time of the first occurrence.
    """
    for key in ("lastTimestamp", "eventTime", "firstTimestamp"):
        if event.get(key):
            return str(event[key])
    metadata = event["metadata"]
    return str(metadata.get("creationTimestamp") or "")
