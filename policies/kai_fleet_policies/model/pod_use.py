"""Pods as users of a cluster: what each requests, as Kubernetes adds it up and as KAI counts it
against a queue; and what each holds or waits for, on which GPUs.

Read from KAI's scheduler (`pkg/scheduler/api/node_info`) and v0.18's binder
(`pkg/binder/plugins/nvfractions`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import keys, mig, sharing
from kai_fleet.values import parse_quantity
from kai_fleet_policies.model.queues import rounded

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # of a node: MiB of each of its GPUs
_FRACTIONS: Final = re.compile(sharing.FRACTIONS_KEY).fullmatch
_TIB_IN_MIB: Final = 2**20  # what is larger was written in bytes, a known fault of the labeller
_DIGITS: Final = 19  # KAI reads numbers of 64 bits
_MIB_IN_MB: Final = 2**20 / 10**6


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """What a pod requests of GPUs: `whole` devices, or a part of each of `devices` devices.

    The part is a `fraction`, or `mebibytes` of memory. `mig` are the GPUs that KAI counts for
    slices.
    """

    whole: float = 0.0
    fraction: float | None = None
    mebibytes: int | None = None
    devices: int = 1
    mig: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether it is a part of a GPU, which others may share."""
        return self.fraction is not None or self.mebibytes is not None

    def each(self, memory: int | None) -> float:
        """The part of one shared device, where a GPU has `memory` (see `gpu_memory`).

        KAI rounds a share of memory up to a hundredth. A share of a GPU whose memory is not known
        is the whole of it.
        """
        if self.fraction is not None:
            return self.fraction
        if self.mebibytes is None:
            return 0.0
        return math.ceil(self.mebibytes / memory * 100) / 100 if memory else 1.0

    def gpus(self, memory: int | None) -> float:
        """How many GPUs of its queue the pod takes."""
        return self.whole + self.mig + (self.each(memory) * self.devices if self.shared else 0.0)


def gpu_request(annotations: Mapping[str, str], requests: Mapping[str, float]) -> GpuRequest:
    """From a pod's annotations and the sum of its requests. What cannot be read counts nothing, nor
    does what is not above 0: a pod takes nothing off what others hold.
    """
    bare = GpuRequest(whole_gpus(requests), mig=mig.gpus_of(requests))
    devices = _count(annotations.get(keys.DEVICES, "1"))
    if devices is None:
        return bare
    if keys.FRACTION in annotations:
        try:
            fraction = float(annotations[keys.FRACTION])
        except ValueError:
            return bare
        return replace(bare, fraction=fraction if 0 < fraction < 1 else None, devices=devices)
    # In mode NvFractions: what one container requests, else its limit.
    found = {key.rpartition(".")[2]: value for key, value in annotations.items() if _FRACTIONS(key)}
    text = found.get("request", found.get("limit"))
    memory = math.ceil(_number(text) / 2**20) if text else _count(annotations.get(keys.MEMORY, ""))
    return replace(bare, mebibytes=memory, devices=devices) if memory else bare


def _count(text: str) -> int | None:
    """A whole number above 0, as KAI reads it; whoever makes a pod may write anything."""
    digits = text.removeprefix("+").lstrip("0")
    return int(digits) if digits.isdecimal() and len(digits) < _DIGITS else None


def gpu_memory(labels: Mapping[str, str], in_megabytes: bool = False) -> int | None:
    """What KAI takes for the memory of each GPU of a node, by the node's labels.

    That is the label's number rounded down to a hundred. `in_megabytes`: the release first makes
    10^6 bytes of the MiB, and holds the pod's MiB against them (see `KaiRelease`).
    """
    text = labels.get(MEMORY_LABEL, "")
    if not text.isdecimal():
        return None
    mebibytes = int(text) if int(text) < _TIB_IN_MIB else int(text) // _TIB_IN_MIB
    amount = int(mebibytes * _MIB_IN_MB) if in_megabytes else mebibytes
    return amount - amount % 100 or None


def groups_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The groups of the GPUs that a pod shares: one label, or one for each of several GPUs."""
    one = [labels[keys.GPU_GROUP]] if keys.GPU_GROUP in labels else []
    several = sorted(value for key, value in labels.items() if key.startswith(f"{keys.GPU_GROUP}/"))
    return tuple(several or one)


def requests_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """By resource, in its base unit: the sum of the containers, or the most that starting needs.

    Containers that start first and stay (`restartPolicy: Always`) add to the sum. A limit stands
    for a request that is not written, as the API server has it.
    """
    running = [_requests(container) for container in spec.get("containers") or ()]
    staying, most = dict[str, float](), dict[str, float]()
    for container in spec.get("initContainers") or ():
        starting = _combined(sum, _requests(container), staying)
        most = _combined(max, most, starting)
        if container.get("restartPolicy") == "Always":
            staying = starting
    requests = _combined(max, _combined(sum, staying, *running), most)
    return _combined(sum, requests, numbers(spec.get("overhead")))


def numbers(resources: Mapping[str, str] | None) -> dict[str, float]:
    """A list of resources, such as a node's allocatable ones, in base units."""
    return {name: _number(text) for name, text in (resources or {}).items()}


def whole_gpus(requests: Mapping[str, float]) -> float:
    """The whole devices, of any make."""
    return sum(requests.get(name, 0.0) for name in keys.GPU_RESOURCES)


def _requests(container: Mapping[str, Any]) -> dict[str, float]:
    resources = container.get("resources") or {}
    return numbers({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _combined(
    how: Callable[[Iterable[float]], float], *several: Mapping[str, float]
) -> dict[str, float]:
    """One amount of each resource, from all that are named in any of several lists."""
    names = dict.fromkeys(name for resources in several for name in resources)
    return {name: how([part.get(name, 0.0) for part in several]) for name in names}


def _number(text: str) -> float:
    try:
        return float(parse_quantity(text))
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that is not ended and not one of Kubernetes', KAI's or the GPU operator's own.

    `node` is None while it waits. `queue` is that of its PodGroup, else of its label. `gpus` are
    those that it holds, or waits for: a share of memory then by the node with the smallest GPUs, as
    KAI counts it. `groups` are KAI's names of the GPUs that it shares. `scheduled_by_kai`: only
    such pods count in queues. `created` is a time stamp of Kubernetes.
    """

    namespace: str
    name: str
    queue: str | None
    node: str | None
    phase: str
    gpus: float
    gpu: GpuRequest
    groups: tuple[str, ...] = ()
    scheduled_by_kai: bool = True
    ending: bool = False
    created: str = ""

    @property
    def namespaced_name(self) -> str:
        """`namespace/name`, as Kubernetes writes it."""
        return f"{self.namespace}/{self.name}"

    @property
    def waits(self) -> bool:
        """Whether it has no node yet."""
        return self.node is None


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
    pods = []
    for item in items:
        if item.namespace in keys.RESERVED or item.ended:
            continue
        metadata, labels, annotations = item["metadata"], item.labels, item.annotations
        node, requests = item.spec.get("nodeName") or None, requests_of(item.spec)
        gpu = gpu_request(annotations, requests)
        memory = memories.get(node) if node else smallest
        group = (item.namespace, annotations.get(keys.POD_GROUP, ""))
        pods.append(
            PodUse(
                namespace=item.namespace,
                name=item.name,
                queue=queues.get(group) or labels.get(keys.QUEUE_LABEL),
                node=node,
                phase=item.phase or "Pending",
                gpus=rounded(gpu.gpus(memory)),
                gpu=gpu,
                groups=groups_of(labels),
                scheduled_by_kai=item.spec.get("schedulerName") == keys.SCHEDULER,
                ending="deletionTimestamp" in metadata,
                created=str(metadata.get("creationTimestamp") or ""),
            )
        )
    return pods
