"""Slices of GPUs (MIG): the resources that nodes advertise, and the GPUs that KAI counts for them.

With NVIDIA's MIG strategy `mixed` each profile is a resource of its own. With `single` a node
advertises a slice as nvidia.com/gpu, and KAI and Kubernetes take it for a whole GPU.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

Number = TypeVar("Number", int, float)
PREFIX = "nvidia.com/mig-"
# Profiles that KAI counts: `nvidia.com/mig-3g.20gb`.
_COUNTED = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")
# All profiles: a suffix says which further engines a slice has.
_SLICE = re.compile(_COUNTED.pattern + r"(\.me|\.me\.all|\.gfx|-me)?")


def is_known(name: str) -> bool:
    """Whether the name of a resource is that of a slice, such as `nvidia.com/mig-1g.10gb.me`."""
    return _SLICE.fullmatch(name) is not None


def slices(devices: Mapping[str, Number]) -> dict[str, Number]:
    """The devices, by resource, that are slices of GPUs by their prefix, also unknown ones."""
    return {name: count for name, count in devices.items() if name.startswith(PREFIX)}


def gpus_of(devices: Mapping[str, float]) -> float:
    """The GPUs that KAI counts in a queue for slices: 3 for each `nvidia.com/mig-3g.20gb`.

    Not the physical GPUs, of which one may hold several slices. In the unit of `devices`: in
    thousandths if they are counted so. Nothing for a profile with a suffix
    (`nvidia.com/mig-1g.10gb.me`), or for any other device, as in
    `pkg/scheduler/api/common_info/resources/mig.go`, the same from v0.7 to v0.17.
    """
    gpus: float = 0
    for name, count in devices.items():
        profile = _COUNTED.fullmatch(name)
        if profile is not None:
            gpus_of_slice = int(profile[1])
            gpus += gpus_of_slice * count
    return gpus
