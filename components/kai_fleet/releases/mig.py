"""Slices of GPUs (MIG): the names under which nodes advertise them, and what KAI counts of them.

With NVIDIA's MIG strategy `mixed` each profile is a resource of its own; with `single` a slice is
advertised as nvidia.com/gpu, and everybody takes it for a whole GPU.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

N = TypeVar("N", int, float)
PREFIX: Final = "nvidia.com/mig-"
_COUNTED: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")
# What follows on a profile says which engines a slice has besides.
_SLICE: Final = re.compile(_COUNTED.pattern + r"(\.me|\.me\.all|\.gfx|-me)?")


def is_known(name: str) -> bool:
    """Whether it is the resource of a slice."""
    return _SLICE.fullmatch(name) is not None


def slices(devices: Mapping[str, N]) -> dict[str, N]:
    """Those of some devices that are slices."""
    return {name: count for name, count in devices.items() if name.startswith(PREFIX)}


def gpus_of(devices: Mapping[str, float]) -> float:
    """How many GPUs of a queue KAI counts for slices: `nvidia.com/mig-3g.20gb` is 3 of them.

    Read from `pkg/scheduler/api/common_info/resources/mig.go`, alike from v0.7 to v0.17. Names with
    more to them (`nvidia.com/mig-1g.10gb.me`) count nothing there, and neither does anything else.
    """
    profiles = {name: _COUNTED.fullmatch(name) for name in devices}
    return sum(int(profile[1]) * devices[name] for name, profile in profiles.items() if profile)
