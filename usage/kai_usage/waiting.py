"""Why a pod waits, as objects prove it: reasons that are rows of `waiting.yaml`.

Of several reasons the first one counts. Callers ask in the order in which the functions stand here;
before limits also about other faults of the queue and KAI's scheduler, and after `too_large` about
messages. That the pod waits, and whose it is, is theirs to know.
"""

from collections.abc import Iterator, Sequence

from kai_usage.amounts import exact, in_words
from kai_usage.keys import (
    FRACTION,
    MEMORY,
    POD_GROUP,
    QUEUE_LABEL,
)
from kai_usage.limits import ExceededLimit
from kai_usage.messages import Meaning, Row, content
from kai_usage.objects import (
    Object,
    annotations_of,
    has_labels,
    labels_of,
)
from kai_usage.pods import Pod

PATIENCE_SECONDS = 60.0  # a shorter wait without a node is normal
_SKIP_PODGROUPER = "kai.scheduler/skip-podgrouper"
Meanings = Iterator[Meaning]  # one, or none if the reason does not apply


def reason(name: str, **values: object) -> Meaning:
    """A row of `waiting.yaml`, with these values for its placeholders.

    Values for advice and commands may be absent, as `Meaning` says. Control characters stay in the
    values. Raises KeyError if no row has that name; for a value that the cause lacks,
    `Meaning.cause` raises it.
    """
    fields = content("waiting")[name]
    return Meaning(Row(name, pattern="", **fields), values)


def closed_gates(pod: Pod) -> Meanings:
    """That a pod has scheduling gates, which keep it from being scheduled; nothing without any."""
    gates = pod.spec.get("schedulingGates") or ()
    names = [str(gate.get("name")) for gate in gates]
    if names:
        yield reason("gated", gates=", ".join(names))


def absent_queue(pod: Pod, choice: str, declared: str = "") -> Meaning:
    """That a pod of KAI names a queue that is not there, or none: without the label also which
    queue KAI would look for.

    Whether it is there is not looked at. `choice` has the queues that it may name, as `a, b or c`;
    `declared` stands behind `is not there`.
    """
    if pod.queue:
        return reason("queue-absent", queue=pod.queue, declared=declared, choice=choice)
    default = ": KAI would look for one called default-queue"
    if QUEUE_LABEL in labels_of(pod.item):  # KAI looks for a queue without a name
        default = ""
    return reason("no-queue", default=default, choice=choice)


def over_limit(exceeded: ExceededLimit, change: str, how: object = "") -> Meaning:
    """That a pod exceeds a limit: alone, so that it never runs, or with what the queue holds.

    `change` says how to raise the limit, and ends `ask for at most 4 GPUs, or …`. `how` stands
    behind it without a space: further words or a command, "" for none.
    """
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
    """That a pod of another scheduler has keys for KAI, which that one ignores.

    They are the label of the queue, and the annotations for a fraction or memory of a GPU; nothing
    without any. Which scheduler the pod has is not looked at.
    """
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
    """That none of these nodes has all the labels of a pod's nodeSelector; nothing without nodes.

    One of them may have some of the labels. Affinity does not count.
    """
    selector = pod.spec.get("nodeSelector") or {}
    if nodes and not any(has_labels(node, selector) for node in nodes):
        labels = [f"{key}={value}" for key, value in selector.items()]
        yield reason("no-such-node", labels=", ".join(labels))


def too_large(pod: Pod, most: float, node_in_words: str) -> Meanings:
    """That a pod asks for more GPUs than any node has, as `GpuRequest.devices_on_node` counts them.

    `most` is the number of the largest node: with 0 each pod with GPUs is too large.
    `node_in_words` is how a sentence calls one, such as `Ready node`. MIG devices do not count.
    """
    devices = pod.gpu.devices_on_node
    if devices > most:
        asks = in_words("gpu", devices)
        yield reason("too-large", asks=asks, most=most, node=node_in_words)


def no_group(pod: Pod, podgrouper: str) -> Meanings:
    """That KAI's Deployment `podgrouper` made no PodGroup for a pod of KAI that needs one.

    By the annotations of the pod: that it has one, or that the pod-grouper is to skip it. Nothing
    for a pod of another scheduler.
    """
    keys = annotations_of(pod.item)
    is_grouped = keys.get(POD_GROUP) or _SKIP_PODGROUPER in keys
    if pod.by_kai and not is_grouped:
        yield reason("no-group", podgrouper=podgrouper)
