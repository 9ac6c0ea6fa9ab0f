"""What pods request, as Kubernetes adds it up and as KAI counts it against a queue; and which GPUs
each pod holds or waits for.

Sources: KAI's scheduler (`pkg/scheduler/api/node_info`) and v0.18's binder
(`pkg/binder/plugins/nvfractions`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import keys, mig, sharing
from kai_fleet.values import parse_quantity
from kai_fleet_policies.model.queues import rounded

Texts: TypeAlias = Mapping[str, str]  # labels or annotations
Amounts: TypeAlias = Mapping[str, float]  # by resource, in its base unit: cores, bytes, devices

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # of a node: MiB of each of its GPUs
_FRACTIONS: Final = re.compile(sharing.FRACTIONS_KEY)
_TIB_IN_MIB: Final = 2**20  # a larger number is in bytes, by a known fault of the labeller
_DIGITS: Final = 19  # KAI reads numbers of 64 bits
_MIB_IN_MB: Final = 2**20 / 10**6


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that a pod requests: whole ones, or a share of each of some devices.

    Args:
        whole: Number of whole GPUs.
        fraction: The share as a fraction of a GPU, above 0 and below 1.
        mebibytes: The share as MiB of a GPU's memory.
        devices: Number of devices of which the pod has the share.
        mig: GPUs that KAI counts for MIG slices.
    """

    whole: float = 0.0
    fraction: float | None = None
    mebibytes: int | None = None
    devices: int = 1
    mig: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether it requests a share of a GPU, which others may share with it."""
        return self.fraction is not None or self.mebibytes is not None

    def each(self, memory: int | None) -> float:
        """The share as a fraction of one device; 0 if the pod requests no share.

        `memory` is what KAI takes for the device's memory, as `gpu_memory` gives it. KAI rounds a
        share of memory up to a hundredth. If the memory is not known the pod takes a whole GPU.
        """
        if self.fraction is not None:
            return self.fraction
        if self.mebibytes is None:
            return 0.0
        if not memory:
            return 1.0
        return math.ceil(self.mebibytes / memory * 100) / 100

    def gpus(self, memory: int | None) -> float:
        """Number of GPUs that the pod takes from its queue; `memory` as in `each`."""
        shares = self.each(memory) * self.devices if self.shared else 0.0
        return self.whole + self.mig + shares


def gpu_request(annotations: Texts, requests: Amounts) -> GpuRequest:
    """The request that a pod's annotations and the sum of its requests mean.

    A share that cannot be read, or that is not above 0, counts nothing: a pod takes nothing off
    what others hold. A fraction counts before an amount of memory.
    """
    request = GpuRequest(whole_gpus(requests), mig=mig.gpus_of(requests))
    devices = _count(annotations.get(keys.DEVICES, "1"))
    if devices is None:
        return request
    if keys.FRACTION in annotations:
        try:
            fraction = float(annotations[keys.FRACTION])
        except ValueError:
            return request
        is_share = 0 < fraction < 1
        return replace(request, fraction=fraction if is_share else None, devices=devices)
    memory = _requested_mebibytes(annotations)
    if not memory:
        return request
    return replace(request, mebibytes=memory, devices=devices)


def _requested_mebibytes(annotations: Texts) -> int | None:
    """MiB of GPU memory: in mode NvFractions the request of a container, else its limit."""
    by_kind = dict[str, str]()
    for key, value in annotations.items():
        if _FRACTIONS.fullmatch(key):
            by_kind[key.rpartition(".")[2]] = value
    text = by_kind.get("request", by_kind.get("limit"))
    if text:
        return math.ceil(_number(text) / 2**20)
    return _count(annotations.get(keys.MEMORY, ""))


def _count(text: str) -> int | None:
    """A whole number above 0, as KAI reads it; None for any other text."""
    digits = text.removeprefix("+").lstrip("0")
    return int(digits) if digits.isdecimal() and len(digits) < _DIGITS else None


def gpu_memory(labels: Texts, in_megabytes: bool = False) -> int | None:
    """What KAI takes for the memory of each GPU of a node, by the node's labels; None without one.

    The unit is MiB, rounded down to a hundred. With `in_megabytes` it is 10^6 bytes: such a release
    converts the label, and still compares the result with the MiB of a pod (see `KaiRelease`).
    """
    text = labels.get(MEMORY_LABEL, "")
    if not text.isdecimal():
        return None
    amount = int(text)
    if amount >= _TIB_IN_MIB:
        amount //= _TIB_IN_MIB
    if in_megabytes:
        amount = int(amount * _MIB_IN_MB)
    return amount - amount % 100 or None


def groups_of(labels: Texts) -> tuple[str, ...]:
    """KAI's names of the GPUs that a pod shares: from one label, or from one label for each GPU.

    The labels for each GPU count before the single one.
    """
    prefix = f"{keys.GPU_GROUP}/"
    groups = sorted(value for key, value in labels.items() if key.startswith(prefix))
    if not groups and keys.GPU_GROUP in labels:
        groups.append(labels[keys.GPU_GROUP])
    return tuple(groups)


def requests_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """What a pod requests, by resource in its base unit (cores, bytes, devices).

    That is the sum of its containers, or the most that its init containers need if that is more,
    and the overhead. Init containers that stay (`restartPolicy: Always`) add to the sum. A limit
    counts for a request that is not written, as the API server has it.
    """
    running = [_requests(container) for container in spec.get("containers") or ()]
    staying = dict[str, float]()
    most = dict[str, float]()
    for container in spec.get("initContainers") or ():
        starting = _combined(sum, _requests(container), staying)
        most = _combined(max, most, starting)
        if container.get("restartPolicy") == "Always":
            staying = starting
    requests = _combined(max, _combined(sum, staying, *running), most)
    return _combined(sum, requests, numbers(spec.get("overhead")))


def numbers(resources: Texts | None) -> dict[str, float]:
    """Resources, such as a node's allocatable ones, in base units; 0 for what cannot be read."""
    if resources is None:
        return {}
    return {name: _number(text) for name, text in resources.items()}


def whole_gpus(requests: Amounts) -> float:
    """Number of whole GPUs of all vendors."""
    return sum(requests.get(name, 0.0) for name in keys.GPU_RESOURCES)


def _requests(container: Mapping[str, Any]) -> dict[str, float]:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    return numbers({**limits, **requests})


def _combined(combine: Callable[[Iterable[float]], float], *lists: Amounts) -> dict[str, float]:
    """One amount of each resource: `combine` of its amounts in the lists, 0 where it is absent."""
    names = dict.fromkeys(chain(*lists))
    combined = dict[str, float]()
    for name in names:
        amounts = [resources.get(name, 0.0) for resources in lists]
        combined[name] = combine(amounts)
    return combined


def _number(text: str) -> float:
    try:
        return float(parse_quantity(text))
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that has not ended, outside the namespaces of Kubernetes, KAI and the GPU operator.

    Args:
        queue: Queue of its PodGroup, else of its label.
        node: None while it waits for one.
        gpus: GPUs that it holds or waits for. KAI counts a share of memory of a pod that waits by
            the node with the smallest GPUs.
        gpu: The request that `gpus` counts.
        groups: KAI's names of the GPUs that it shares.
        scheduled_by_kai: Only such pods count in queues.
        ending: It was deleted, and is still there.
        created: Time stamp of Kubernetes.
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
    """The pods that hold something or wait.

    `memories` has the memory of each node's GPUs by the node's name, as `gpu_memory` gives it.
    """
    queues = dict[tuple[str, str], str | None]()
    for pod_group in pod_groups:
        queues[pod_group.namespace, pod_group.name] = pod_group.spec.get("queue")
    smallest = min(filter(None, memories.values()), default=None)
    pods = list[PodUse]()
    for pod in items:
        if pod.namespace in keys.RESERVED or pod.ended:
            continue
        group = (pod.namespace, pod.annotations.get(keys.POD_GROUP, ""))
        node = pod.spec.get("nodeName")
        memory = memories.get(node) if node else smallest
        pods.append(_pod_use(pod, queues.get(group), memory))
    return pods


def _pod_use(pod: KubeObject, group_queue: str | None, memory: int | None) -> PodUse:
    """A pod with the queue of its PodGroup, if that has one, and the memory of a GPU."""
    metadata = pod["metadata"]
    gpu = gpu_request(pod.annotations, requests_of(pod.spec))
    return PodUse(
        namespace=pod.namespace,
        name=pod.name,
        queue=group_queue or pod.labels.get(keys.QUEUE_LABEL),
        node=pod.spec.get("nodeName") or None,
        phase=pod.phase or "Pending",
        gpus=rounded(gpu.gpus(memory)),
        gpu=gpu,
        groups=groups_of(pod.labels),
        scheduled_by_kai=pod.spec.get("schedulerName") == keys.SCHEDULER,
        ending="deletionTimestamp" in metadata,
        created=str(metadata.get("creationTimestamp") or ""),
    )
