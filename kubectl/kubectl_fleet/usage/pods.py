"""Pods as users of a cluster: what each holds or waits for, and on which GPUs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_fleet.releases.keys import POD_GROUP, QUEUE_LABEL, RESERVED, SCHEDULER
from kubectl_fleet.usage import requests
from kubectl_fleet.usage.amounts import Amounts

RESERVATIONS: Final = "kai-resource-reservation"
OVER: Final = ("Succeeded", "Failed")


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
    items: Iterable[Mapping[str, Any]],
    pod_groups: Iterable[Mapping[str, Any]],
    memories: Mapping[str, int | None],
) -> list[PodUse]:
    """The pods that hold something or wait. `memories` are those of the nodes' GPUs."""
    queues = {
        (group["metadata"].get("namespace", ""), group["metadata"]["name"]): queue
        for group in pod_groups
        if (queue := (group.get("spec") or {}).get("queue"))
    }
    smallest = min((memory for memory in memories.values() if memory), default=None)
    return [
        _pod(item, queues, memories, smallest)
        for item in items
        if item["metadata"].get("namespace", "") not in RESERVED and not is_over(item)
    ]


def is_over(item: Mapping[str, Any]) -> bool:
    """Whether a pod holds nothing any more."""
    return (item.get("status") or {}).get("phase") in OVER


def _pod(
    item: Mapping[str, Any],
    queues: Mapping[tuple[str, str], str],
    memories: Mapping[str, int | None],
    smallest: int | None,
) -> PodUse:
    metadata, spec = item["metadata"], item.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    namespace, node = metadata.get("namespace", ""), spec.get("nodeName") or None
    wanted = requests.requests_of(spec)
    gpu = requests.gpu_request(annotations, wanted)
    memory = memories.get(node) if node else smallest
    return PodUse(
        namespace=namespace,
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        queue=queues.get((namespace, annotations.get(POD_GROUP, ""))) or labels.get(QUEUE_LABEL),
        node=node,
        phase=(item.get("status") or {}).get("phase", "Pending"),
        amounts=requests.in_queue_units(wanted, gpu.gpus(memory)),
        gpu=gpu,
        groups=requests.groups_of(labels),
        scheduled_by_kai=spec.get("schedulerName") == SCHEDULER,
        ending="deletionTimestamp" in metadata,
        created=metadata.get("creationTimestamp") or "",
    )
