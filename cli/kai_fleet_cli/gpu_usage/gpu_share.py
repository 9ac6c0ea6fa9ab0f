"""What a pod takes of GPUs, as KAI counts it against a queue.

Read from KAI's scheduler, v0.7.11 to v0.17.0: `pkg/scheduler/api/node_info/node_info.go` and
`gpu_sharing_node_info.go` (memory), `pkg/scheduler/api/common_info/resources/mig.go` (MIG).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kai_fleet.kai.keys import DEVICES, FRACTION, GPU_RESOURCES, MEMORY

GROUP: Final = "runai-gpu-group"  # the label of a pod that shares a GPU, and of its reservation
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # of a node: MiB of each of its GPUs
_MIG: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")
_TIB_IN_MIB: Final = 2**20  # what is larger was written in bytes, a known fault of the labeller
_MIB_IN_MB: Final = 2**20 / 10**6


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """What a pod asks for: `whole` devices, or a part of each of `devices` devices.

    The part is a `fraction`, or `mebibytes` of memory. `mig` counts the slices of MIG devices:
    KAI counts `nvidia.com/mig-3g.20gb` as 3 GPUs of the queue.
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

        KAI rounds a share of memory up to a hundredth. A share of a GPU whose memory nobody knows
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


def gpu_ask(annotations: Mapping[str, str], requests: Mapping[str, float]) -> GpuAsk:
    """From a pod's annotations and the sum of its requests. What cannot be read counts nothing."""
    whole = sum(requests.get(name, 0.0) for name in GPU_RESOURCES)
    mig = sum(
        int(found[1]) * amount
        for name, amount in requests.items()
        if name.startswith("nvidia.com/mig-") and (found := _MIG.fullmatch(name))
    )
    if FRACTION not in annotations and MEMORY not in annotations:
        return GpuAsk(whole, mig=mig)
    try:
        devices = int(annotations.get(DEVICES, 1))
        if FRACTION in annotations:
            fraction = float(annotations[FRACTION])
            return GpuAsk(whole, fraction if 0 < fraction < 1 else None, devices=devices, mig=mig)
        return GpuAsk(whole, mebibytes=int(annotations[MEMORY]), devices=devices, mig=mig)
    except ValueError:
        return GpuAsk(whole, mig=mig)


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
    several = sorted(value for key, value in labels.items() if key.startswith(f"{GROUP}/"))
    if several:
        return tuple(several)
    return (labels[GROUP],) if GROUP in labels else ()
