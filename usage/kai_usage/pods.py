"""Pods that hold something of a cluster, or wait for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kai_usage.amounts import Amounts
from kai_usage.gpu_requests import GpuRequest, gpu_request
from kai_usage.keys import GPU_GROUP, POD_GROUP, QUEUE_LABEL, RESERVED, SCHEDULER
from kai_usage.objects import (
    Object,
    annotations_of,
    has_ended,
    labels_of,
    name_of,
    namespace_of,
    phase_of,
    spec_of,
)
from kai_usage.requests import amounts_of, requests_of


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has not ended: it holds something, or waits.

    Attributes:
        item: The object.
        phase: Its phase, which is Pending, Running or Unknown.
        queue: The queue that its PodGroup names, or else its label; None without either. A label
            without a value names none. A pod of another scheduler may have one, too.
        node: The name of its node; None while it waits.
        amounts: What it takes of its queue, by each of `RESOURCES`. A share of GPU memory counts by
            the GPUs of its node, without a node by the smallest of the cluster; as an entire GPU if
            their memory is not known.
        gpu: The request that the GPUs of `amounts` count.
        groups: KAI's names for the GPUs that it shares; empty until it has them.
        by_kai: KAI schedules it, by its `schedulerName`. Only such pods count in queues.
        is_being_deleted: It has a time stamp of its deletion.
        created: The time stamp of its creation; "" without one.
    """

    item: Object
    namespace: str
    name: str
    phase: str
    queue: str | None
    node: str | None
    amounts: Amounts
    gpu: GpuRequest
    groups: tuple[str, ...]
    by_kai: bool
    is_being_deleted: bool
    created: str

    @property
    def spec(self) -> Object:
        """The spec of the object."""
        return spec_of(self.item)

    @property
    def namespaced_name(self) -> str:
        """`namespace/name`, as Kubernetes writes it."""
        return f"{self.namespace}/{self.name}"

    @property
    def gpu_amount(self) -> float:
        """The amount of GPUs that it holds or waits for, as its queue counts them."""
        return self.amounts["gpu"]

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return self.node is None


def read_pods(
    items: Iterable[Object],
    pod_groups: Iterable[Object] = (),
    memories: Mapping[str, int | None] | None = None,
) -> list[Pod]:
    """The pods that have not ended, without those of Kubernetes, KAI and the GPU operator.

    Those left out are in the namespaces `RESERVED`. Pods of other schedulers, and pods that are
    being deleted, are in the list. The order stays.

    Args:
        items: All pods.
        pod_groups: All PodGroups: the queue of a pod's own, in its namespace and with the name in
            its annotation, counts before the pod's label. One without a queue does not count.
        memories: The memory of each GPU by the node's name, in KAI's unit: MiB rounded down to a
            hundred, 10^6 bytes before v0.8.5. A pod without a node counts by the smallest that is
            known. Where it is unknown (None, or no such node), a share of memory counts as a GPU.
    """
    memories = memories or {}
    smallest = min(filter(None, memories.values()), default=None)
    queues: dict[tuple[str, str], str | None] = {}
    for pod_group in pod_groups:
        key = (namespace_of(pod_group), name_of(pod_group))
        queues[key] = spec_of(pod_group).get("queue")
    pods = []
    for item in items:
        if namespace_of(item) in RESERVED or has_ended(item):
            continue
        node = spec_of(item).get("nodeName")
        memory = memories.get(node) if node else smallest
        group = (namespace_of(item), annotations_of(item).get(POD_GROUP, ""))
        pods.append(_pod(item, queues.get(group), memory))
    return pods


def _pod(item: Object, group_queue: str | None, kai_memory: int | None) -> Pod:
    """A pod with the queue of its PodGroup; of its label if `group_queue` is None or "".

    `kai_memory` is that of one GPU of its node, or of the smallest GPUs of the cluster while it
    waits, in KAI's unit, as for `read_pods`; None: a share of memory counts as a GPU.
    """
    metadata = item["metadata"]
    spec = spec_of(item)
    labels = labels_of(item)
    requests = requests_of(spec)
    gpu = gpu_request(annotations_of(item), requests)
    return Pod(
        item=item,
        namespace=namespace_of(item),
        name=name_of(item),
        phase=phase_of(item),
        queue=group_queue or labels.get(QUEUE_LABEL) or None,
        node=spec.get("nodeName") or None,
        amounts=amounts_of(requests, gpu.gpus(kai_memory)),
        gpu=gpu,
        groups=groups_of(labels),
        by_kai=spec.get("schedulerName") == SCHEDULER,
        is_being_deleted="deletionTimestamp" in metadata,
        created=str(metadata.get("creationTimestamp") or ""),
    )


def groups_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """KAI's names for the GPUs that a pod shares: in one label, or in a label for each GPU.

    Sorted; empty without such a label. If there are labels for each GPU, the single one does not
    count.
    """
    prefix = f"{GPU_GROUP}/"
    groups = sorted(value for key, value in labels.items() if key.startswith(prefix))
    if not groups and GPU_GROUP in labels:
        return (labels[GPU_GROUP],)
    return tuple(groups)
