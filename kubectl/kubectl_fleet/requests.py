"""A pod's requests of CPU, memory and GPUs, added up as Kubernetes and KAI do.

Read from KAI's scheduler, v0.7.11 to v0.17.0: `pkg/scheduler/api/node_info/node_info.go`,
`gpu_sharing_node_info.go` and `common_info/resources/mig.go`; mode NvFractions from v0.18's binder,
`pkg/binder/plugins/nvfractions`.
"""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lightkube.utils.quantity import parse_quantity

from kubectl_fleet.table import rounded

Amounts = dict[str, float]  # by resource: GPUs in devices, CPU in millicores, memory in 10^6 bytes
Requests = Counter[str]  # by name in Kubernetes, in thousandths of a core, a byte or a device
RESOURCES: Final = ("gpu", "cpu", "memory")
# Annotations of a pod: the share of one GPU that it asks for, or MiB of it, and of how many GPUs.
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_NV_FRACTIONS: Final = re.compile(r"nvidia\.com/container\..+\.gpu-memory\.(request|limit)")
_MIG: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")
_MIB: Final = 2**20  # bytes
_MAX_QUANTITY: Final = 10**18  # the least that Kubernetes has to support as its largest quantity


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that a pod requests: `whole` devices, or a share of each of `devices` devices.

    The share is a `fraction`, or `memory_mib`. `mig` is the number of GPUs that KAI counts for MIG
    devices: a seventh of a GPU counts as one.
    """

    whole: float = 0.0
    fraction: float | None = None
    memory_mib: int | None = None
    devices: int = 1
    mig: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether it asks for a share of a GPU, which other pods may share."""
        return self.fraction is not None or self.memory_mib is not None

    def fraction_of(self, kai_memory: int | None) -> float:
        """The share of a GPU as a fraction, 0 if it asks for none.

        A share of memory is rounded up to a hundredth, as KAI does. `kai_memory` is the memory of
        the GPU as KAI counts it; if it is None, the share counts as an entire GPU.
        """
        if self.fraction is not None or self.memory_mib is None:
            return self.fraction or 0.0
        if not kai_memory:
            return 1.0
        return math.ceil(self.memory_mib / kai_memory * 100) / 100

    def gpus(self, kai_memory: int | None) -> float:
        """The number of GPUs that the pod takes of its queue, on GPUs with that memory."""
        return self.whole + self.mig + self.fraction_of(kai_memory) * self.devices


def gpu_request(annotations: Mapping[str, str], requests: Requests) -> GpuRequest:
    """The GPUs that a pod requests by its annotations and its resources.

    The first of these that is there counts: the fraction, the memory for containers (mode
    NvFractions), the memory of the pod. One that cannot be read counts as no share.
    """
    whole = amounts_of(requests)["gpu"]
    mig = _mig_gpus(requests)
    container_memory = _container_memory(annotations)
    with contextlib.suppress(ValueError):
        devices = _positive_int(annotations.get(_DEVICES, "1"))
        if FRACTION in annotations:
            fraction = float(annotations[FRACTION])
            valid_fraction = fraction if 0 < fraction < 1 else None
            return GpuRequest(whole, fraction=valid_fraction, devices=devices, mig=mig)
        if container_memory:
            memory_mib = math.ceil(_thousandths(container_memory) / 1000 / _MIB)
            return GpuRequest(
                whole,
                memory_mib=memory_mib or None,
                devices=devices,
                mig=mig,
            )
        if MEMORY in annotations:
            memory_mib = _positive_int(annotations[MEMORY])
            return GpuRequest(whole, memory_mib=memory_mib, devices=devices, mig=mig)
    return GpuRequest(whole, mig=mig)


def _mig_gpus(requests: Requests) -> float:
    """The GPUs that KAI counts for MIG devices: `mig-2g.10gb` counts as 2."""
    gpus = 0.0
    for name, thousandths in requests.items():
        match = _MIG.fullmatch(name)
        if match:
            gpus += int(match[1]) * thousandths / 1000
    return gpus


def _container_memory(annotations: Mapping[str, str]) -> str | None:
    """The GPU memory that annotations request for a container, or its limit; a quantity."""
    quantities = {}
    for key, quantity in annotations.items():
        match = _NV_FRACTIONS.fullmatch(key)
        if match:
            quantities[match[1]] = quantity
    return quantities.get("request") or quantities.get("limit")


def requests_of(spec: Mapping[str, Any]) -> Requests:
    """The requests of a pod.

    For each resource the larger of two amounts: that of all containers together, and that of the
    largest init container. Init containers that keep running (`restartPolicy: Always`) add to both.
    A limit counts as the request if only the limit is written. The pod's overhead is added.
    """
    sidecars = Requests()
    starting = Requests()
    for container in spec.get("initContainers") or ():
        with_sidecars = sidecars + _container(container)
        starting |= with_sidecars  # the larger amount of each resource
        if container.get("restartPolicy") == "Always":
            sidecars = with_sidecars
    running = sum(map(_container, spec.get("containers") or ()), sidecars)
    return (running | starting) + read(spec.get("overhead"))


def read(resources: Mapping[str, str] | None) -> Requests:
    """Quantities by resource, such as a node's `allocatable`, in thousandths."""
    return Requests({name: _thousandths(text) for name, text in (resources or {}).items()})


def amounts_of(requests: Requests, gpus: float | None = None) -> Amounts:
    """Requests as queues count them.

    `gpus` takes the place of the entire GPUs of NVIDIA and AMD in the requests.
    """
    if gpus is None:
        gpus = (requests["nvidia.com/gpu"] + requests["amd.com/gpu"]) / 1000
    return {
        "gpu": rounded(gpus),
        "cpu": float(requests["cpu"]),
        "memory": rounded(requests["memory"] / 10**9),
    }


@lru_cache(maxsize=4096)  # pods of one workload request the same
def _thousandths(quantity: str) -> int:
    """A quantity in thousandths of its base unit; 0 for what is no quantity."""
    try:
        return int(min(parse_quantity(quantity) or 0, _MAX_QUANTITY) * 1000)
    except (ValueError, ArithmeticError):
        return 0


def _container(container: Mapping[str, Any]) -> Requests:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or {}
    return read({**limits, **requests})


def _positive_int(text: str) -> int:
    """A number of devices or MiB. Raises ValueError for what is none, or is too large."""
    number = int(text)
    if not 0 < number < 2**40:
        raise ValueError(f"{text[:64]!r} is no number of devices or MiB")
    return number
