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
Requests = Counter[str]  # in thousandths of a core, a byte or a device
RESOURCES: Final = ("gpu", "cpu", "memory")
FRACTION: Final = "gpu-fraction"  # annotations, as are the next two
MEMORY: Final = "gpu-memory"
_MOST: Final = 10**18  # what a quantity of Kubernetes can hold at least
_DEVICES: Final = "gpu-fraction-num-devices"
_NV_FRACTIONS: Final = re.compile(r"nvidia\.com/container\..+\.gpu-memory\.(request|limit)")
_MIG: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """A pod's request of GPUs: `whole` devices, or a part of each of `devices` devices.

    The part is a `fraction`, or MiB of memory. `mig` is what KAI counts for slices.
    """

    whole: float = 0.0
    fraction: float | None = None
    memory: int | None = None
    devices: int = 1
    mig: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether it is a part of a GPU, which others may share."""
        return self.fraction is not None or self.memory is not None

    def part(self, memory: int | None) -> float:
        """Return the part of a device of `memory` MiB, rounded up to a hundredth as KAI does.

        Of a device whose memory is not known it is the whole.
        """
        if self.fraction is not None or self.memory is None:
            return self.fraction or 0.0
        return math.ceil(self.memory / memory * 100) / 100 if memory else 1.0

    def gpus(self, memory: int | None) -> float:
        """Return how many GPUs of its queue the pod takes."""
        return self.whole + self.mig + self.part(memory) * self.devices


def gpu_request(annotations: Mapping[str, str], requests: Requests) -> GpuRequest:
    """Read a pod's annotations and its requests. What can't be read counts nothing."""
    whole = amounts_of(requests)["gpu"]
    slices = ((_MIG.fullmatch(name), count) for name, count in requests.items())
    mig = sum(int(match[1]) * count / 1000 for match, count in slices if match)
    keys = ((_NV_FRACTIONS.fullmatch(key), text) for key, text in annotations.items())
    containers = {match[1]: text for match, text in keys if match}
    own = containers.get("request") or containers.get("limit")
    with contextlib.suppress(ValueError):
        devices = _count(annotations.get(_DEVICES, "1"))
        if FRACTION in annotations:
            fraction = float(annotations[FRACTION])
            return GpuRequest(whole, fraction if 0 < fraction < 1 else None, None, devices, mig)
        if own:
            memory = math.ceil(_thousandths(own) / 1000 / 2**20) or None
            return GpuRequest(whole, None, memory, devices, mig)
        if MEMORY in annotations:
            return GpuRequest(whole, None, _count(annotations[MEMORY]), devices, mig)
    return GpuRequest(whole, mig=mig)


def requests_of(spec: Mapping[str, Any]) -> Requests:
    """Add up a pod's requests: the sum of the containers, or the most that starting needs.

    Init containers that stay (`restartPolicy: Always`) add to the sum. A limit stands for a request
    that is not written.
    """
    staying, most = Requests(), Requests()
    for container in spec.get("initContainers") or ():
        starting = staying + _container(container)
        most |= starting
        if container.get("restartPolicy") == "Always":
            staying = starting
    total = sum(map(_container, spec.get("containers") or ()), staying)
    return (total | most) + read(spec.get("overhead"))


def read(resources: Mapping[str, str] | None) -> Requests:
    """Read a list of resources, such as a node's allocatable ones."""
    return Requests({name: _thousandths(text) for name, text in (resources or {}).items()})


def amounts_of(requests: Requests, gpus: float | None = None) -> Amounts:
    """Return requests as queues count them; `gpus` are the whole ones if None, of any make."""
    whole = (requests["nvidia.com/gpu"] + requests["amd.com/gpu"]) / 1000
    cpu, memory = float(requests["cpu"]), rounded(requests["memory"] / 10**9)
    return {"gpu": rounded(whole if gpus is None else gpus), "cpu": cpu, "memory": memory}


@lru_cache(maxsize=4096)  # pods of one workload request the same
def _thousandths(text: str) -> int:
    try:
        return int(min(parse_quantity(text) or 0, _MOST) * 1000)
    except (ValueError, ArithmeticError):
        return 0


def _container(container: Mapping[str, Any]) -> Requests:
    resources = container.get("resources") or {}
    return read({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _count(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**40:
        raise ValueError(f"{text[:64]!r} is no number of devices or MiB")
    return number
