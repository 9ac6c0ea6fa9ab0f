"""The GPUs that a pod asks for: entire ones, a fraction or an amount of memory of some, MIG slices.

Read from KAI's scheduler, v0.7.11 to v0.17.0: `pkg/scheduler/api/node_info/node_info.go`,
`gpu_sharing_node_info.go` and `common_info/resources/mig.go`; mode NvFractions from v0.18's binder,
`pkg/binder/plugins/nvfractions`.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kai_usage import mig
from kai_usage.keys import DEVICES, FRACTION, MEMORY
from kai_usage.requests import Requests, read_resources, whole_gpus

# Annotations of a pod in mode NvFractions; KAI's binder writes one more, with the devices.
_NV_FRACTIONS = re.compile(
    r"nvidia\.com/container\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\.gpu-memory\.(request|limit)"
)
_MIB = 2**20  # bytes
_DIGITS = 19  # KAI reads numbers of 64 bits


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """The GPUs that a pod requests: `whole` devices, and a share of each of `devices` devices.

    The share is a `fraction` between 0 and 1, or `memory_mib`, MiB of each device; both are None
    without a share, and `devices` means nothing then. `mig` is the number of GPUs that KAI counts
    for MIG devices: a seventh of a GPU counts as one. A pod may write entire GPUs and a share.
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

    @property
    def devices_on_node(self) -> float:
        """The number of GPUs that one node has to have for it, MIG devices aside.

        For one that asks for entire GPUs and a share only the entire ones count.
        """
        return self.devices if self.shared and not self.whole else self.whole

    def fraction_of(self, kai_memory: int | None) -> float:
        """The share of each of its devices as a fraction, 0 if it asks for none.

        A share of memory is rounded up to a hundredth, as KAI does. More memory than a GPU has is a
        fraction above 1.

        Args:
            kai_memory: The memory of the GPU as `nodes.kai_memory_of` gives it: in MiB, but before
                v0.8.5 in 10^6 bytes, which KAI compares with a pod's MiB all the same. None:
                unknown, and a share of memory counts as an entire GPU. A `fraction` stays as it is.
        """
        if self.fraction is not None or self.memory_mib is None:
            return self.fraction or 0.0
        if not kai_memory:
            return 1.0
        return math.ceil(self.memory_mib / kai_memory * 100) / 100

    def gpus(self, kai_memory: int | None) -> float:
        """The number of GPUs that the pod takes of its queue: entire ones, MIG, and all its shares.

        `kai_memory` is that of each GPU, as for `fraction_of`.
        """
        return self.whole + self.mig + self.fraction_of(kai_memory) * self.devices


def gpu_request(annotations: Mapping[str, str], requests: Requests) -> GpuRequest:
    """The GPUs that a pod requests by its annotations and its resources (in thousandths).

    The first of these that is there counts: the fraction, the memory for containers (mode
    NvFractions), the memory of the pod. A fraction is there if its annotation is, also as "". If
    that one cannot be read or is not above 0, or is a fraction of 1 or more, there is no share, nor
    with a number of devices that is no whole number above 0 (absent: 1). So no text that a pod
    writes makes an amount negative, and sums of a queue smaller.
    """
    mig_gpus = mig.gpus_of(requests) / 1000
    request = GpuRequest(whole_gpus(requests), mig=mig_gpus)
    devices = whole_number(annotations.get(DEVICES, "1"))
    if devices is None:
        return request
    if FRACTION in annotations:
        fraction = _fraction(annotations[FRACTION])
        return replace(request, fraction=fraction, devices=devices)
    memory_mib = _memory_mib(annotations)
    if memory_mib is None:
        return request
    return replace(request, memory_mib=memory_mib, devices=devices)


def whole_number(text: str) -> int | None:
    """A whole number above 0, as KAI reads it: a `+` and zeros may be before its digits.

    None for any other text, and for a number of 19 digits or more.
    """
    digits = text.removeprefix("+").lstrip("0")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) >= _DIGITS:
        return None
    return int(digits)


def _fraction(text: str) -> float | None:
    """A fraction between 0 and 1, as Python reads a float: also ` 0.5 ` and `0.2_5`.

    None for any other text, and for 0 and 1 themselves.
    """
    try:
        fraction = float(text)
    except ValueError:
        return None
    return fraction if 0 < fraction < 1 else None


def _memory_mib(annotations: Mapping[str, str]) -> int | None:
    """MiB of GPU memory, rounded up: the request for a container, else a limit, else the pod's.

    A container's is a quantity in bytes (`5Gi`), the pod's a whole number of MiB. The request for
    any container counts before all limits. Of several requests the last in `annotations` counts,
    and so of several limits. If that last one is "", it counts as absent, and earlier ones do not
    count either. None without any, and if the one that counts cannot be read or is not above 0: no
    other takes its place.
    """
    quantities = {}
    for key, quantity in annotations.items():
        match = _NV_FRACTIONS.fullmatch(key)
        if match:
            quantities[match[2]] = quantity
    container_memory = quantities.get("request") or quantities.get("limit")
    if not container_memory:
        return whole_number(annotations.get(MEMORY, ""))
    thousandths = read_resources({MEMORY: container_memory})[MEMORY]
    return math.ceil(thousandths / 1000 / _MIB) or None
