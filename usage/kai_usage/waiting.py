"""Why a pod waits, as objects prove it: reasons that are rows of `waiting.yaml`.

Of several reasons the first one counts. Callers ask in the order in which the functions stand here,
after closed gates about the pod's queue and KAI's scheduler, and after `too_large` about messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

import yaml

from kai_usage.amounts import exact, in_words
from kai_usage.keys import (
    FRACTION,
    MEMORY,
    POD_GROUP,
    QUEUE_LABEL,
)
from kai_usage.limits import ExceededLimit
from kai_usage.messages import Meaning, row
from kai_usage.objects import (
    Object,
    annotations_of,
    has_labels,
    labels_of,
)
from kai_usage.pods import Pod

PATIENCE_SECONDS: Final = 60.0  # a shorter wait without a node is normal
_SKIP_PODGROUPER: Final = "kai.scheduler/skip-podgrouper"
Meanings: TypeAlias = Iterator[Meaning]


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `waiting.yaml` by name, read once in a process."""
    file = files(__package__) / "waiting.yaml"
    table: dict[str, dict[str, Any]] = yaml.safe_load(file.read_bytes())
    return table


def reason(name: str, **values: object) -> Meaning:
    """A row of `waiting.yaml`, with these values for its placeholders.

    Control characters stay in the values. Raises KeyError if no row has that name; for a value that
    is not given, `Meaning.cause` raises it.
    """
    fields = _rows()[name]
    return Meaning(row(name=name, pattern="", **fields), values)


def closed_gates(pod: Pod) -> Meanings:
    """The scheduling gates of a pod; nothing without any."""
    gates = pod.spec.get("schedulingGates") or ()
    names = [str(gate.get("name")) for gate in gates]
    if names:
        yield reason("gated", gates=", ".join(names))


def no_queue(pod: Pod, choice: str) -> Meaning:
    """That a pod of KAI names no queue. `choice` are those that it may name."""
    default = ": KAI would look for one called default-queue"
    if QUEUE_LABEL in labels_of(pod.item):  # KAI looks for a queue without a name
        default = ""
    return reason("no-queue", default=default, choice=choice)


def over_limit(exceeded: ExceededLimit, change: str, how: object = "") -> Meaning:
    """A limit that a pod exceeds. `change`, and `how` behind it, are words for how to raise it."""
    resource = exceeded.resource
    return reason(
        "above-limit" if exceeded.alone else "queue-full",
        asks=in_words(resource, exceeded.requested),
        limit=in_words(resource, exceeded.limit),
        held=exact(resource, exceeded.in_use),
        queue=exceeded.queue.name,
        change=change,
        how=how,
    )


def not_for_kai(pod: Pod) -> Meanings:
    """Labels and annotations for KAI on a pod that another scheduler has; nothing without any."""
    annotations = annotations_of(pod.item)
    keys = [key for key in (FRACTION, MEMORY) if key in annotations]
    if QUEUE_LABEL in labels_of(pod.item):
        keys.insert(0, QUEUE_LABEL)
    if keys:
        yield reason(
            "not-for-kai",
            keys=" and ".join(keys),
            scheduler=pod.spec.get("schedulerName"),
        )


def no_such_node(pod: Pod, nodes: Sequence[Object]) -> Meanings:
    """The labels that a pod asks for and none of these nodes has; nothing without nodes."""
    selector = pod.spec.get("nodeSelector") or {}
    if nodes and not any(has_labels(node, selector) for node in nodes):
        labels = [f"{key}={value}" for key, value in selector.items()]
        yield reason("no-such-node", labels=", ".join(labels))


def too_large(pod: Pod, most: float, node: str) -> Meanings:
    """That a pod asks for more GPUs than a node has; MIG devices do not count.

    `most` is the number of the largest node, `node` how a sentence calls such nodes.
    """
    devices = pod.gpu.devices_on_node
    if devices > most:
        asks = in_words("gpu", devices)
        yield reason("too-large", asks=asks, most=most, node=node)


def no_group(pod: Pod, podgrouper: str) -> Meanings:
    """That KAI's Deployment `podgrouper` made no PodGroup for a pod of KAI that needs one."""
    keys = annotations_of(pod.item)
    is_grouped = keys.get(POD_GROUP) or _SKIP_PODGROUPER in keys
    if pod.by_kai and not is_grouped:
        yield reason("no-group", podgrouper=podgrouper)
