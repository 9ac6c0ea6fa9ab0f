"""Pods as users of a cluster: what each holds or waits for, and on which GPUs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.releases.keys import POD_GROUP, QUEUE_LABEL, RESERVED, SCHEDULER
from kubectl_fleet.usage import requests
from kubectl_fleet.usage.amounts import Amounts

RESERVATIONS: Final = "kai-resource-reservation"


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that is not ended and not one of Kubernetes', KAI's or the GPU operator's own.

    `node` is None while it waits. `queue` is that of its PodGroup, else of its label; None where
    neither names one. `amounts` is what it holds, or what it waits for: for a share of GPU memory
    then by the node with the smallest GPUs, as KAI counts it. `groups` are KAI's names of the GPUs
    that it shares. `scheduled_by_kai`: only such pods count in queues. `created` is a time stamp
    of Kubernetes. `never` says why a pod that waits can never run, as the end of a sentence; "" for
    one that may.
    """

    namespace: str
    name: str
    uid: str
    queue: str | None
    node: str | None
    phase: str
    amounts: Amounts
    gpu: requests.GpuRequest
    groups: tuple[str, ...] = ()
    scheduled_by_kai: bool = True
    ending: bool = False
    created: str = ""
    never: str = ""

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return self.node is None

    @property
    def subject(self) -> str:
        """As the doctor's findings name it: `pod NAME in namespace NAMESPACE`."""
        return f"pod {self.name} in namespace {self.namespace}"


def pods_of(
    items: Iterable[KubeObject],
    pod_groups: Iterable[KubeObject],
    memories: Mapping[str, int | None],
) -> list[PodUse]:
    """The pods that hold something or wait. `memories` are those of the nodes' GPUs."""
    queues = {
        (group.namespace, group.name): queue
        for group in pod_groups
        if (queue := group.spec.get("queue"))
    }
    smallest = min((memory for memory in memories.values() if memory), default=None)
    return [
        _pod(item, queues, memories, smallest)
        for item in items
        if item.namespace not in RESERVED and not item.ended
    ]


def _pod(
    item: KubeObject,
    queues: Mapping[tuple[str, str], str],
    memories: Mapping[str, int | None],
    smallest: int | None,
) -> PodUse:
    metadata, labels, annotations = item["metadata"], item.labels, item.annotations
    namespace, node = item.namespace, item.spec.get("nodeName") or None
    wanted = requests.requests_of(item.spec)
    gpu = requests.gpu_request(annotations, wanted)
    memory = memories.get(node) if node else smallest
    return PodUse(
        namespace=namespace,
        name=item.name,
        uid=metadata.get("uid", ""),
        queue=queues.get((namespace, annotations.get(POD_GROUP, ""))) or labels.get(QUEUE_LABEL),
        node=node,
        phase=item.phase or "Pending",
        amounts=requests.in_queue_units(wanted, gpu.gpus(memory)),
        gpu=gpu,
        groups=requests.groups_of(labels),
        scheduled_by_kai=item.spec.get("schedulerName") == SCHEDULER,
        ending="deletionTimestamp" in metadata,
        created=metadata.get("creationTimestamp") or "",
    )
