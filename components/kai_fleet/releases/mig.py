"""Slices of GPUs (MIG): the names under which nodes advertise them, and what KAI counts of them.

With NVIDIA's MIG strategy `mixed` each profile is a resource of its own; with `single` a slice is
advertised as nvidia.com/gpu, and everybody takes it for a whole GPU.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

N = TypeVar("N", int, float)
PREFIX: Final = "nvidia.com/mig-"
# Those of A30, A100, H100, H200, GH200, B200, GB200 and RTX PRO 6000, as NVIDIA's mig-parted cuts
# them; what follows on a profile says which engines a slice has besides.
_PROFILES: Final = (
    *("1g.5gb", "1g.6gb", "1g.10gb", "1g.12gb", "1g.18gb", "1g.20gb", "1g.23gb", "1g.24gb"),
    *("1g.35gb", "1g.36gb", "1g.45gb", "1g.47gb", "2g.10gb", "2g.12gb", "2g.20gb", "2g.24gb"),
    *("2g.35gb", "2g.36gb", "2g.45gb", "2g.47gb", "2g.48gb", "3g.20gb", "3g.40gb", "3g.47gb"),
    *("3g.48gb", "3g.71gb", "3g.72gb", "3g.90gb", "3g.93gb", "3g.95gb", "4g.20gb", "4g.24gb"),
    *("4g.40gb", "4g.47gb", "4g.48gb", "4g.71gb", "4g.72gb", "4g.90gb", "4g.93gb", "4g.95gb"),
    *("4g.96gb", "7g.40gb", "7g.80gb", "7g.94gb", "7g.96gb", "7g.141gb", "7g.144gb", "7g.180gb"),
    *("7g.186gb", "7g.189gb"),
)
_ENGINES: Final = ("", ".me", ".me.all", ".gfx", "-me")
_KNOWN: Final = frozenset(f"{PREFIX}{of}{more}" for of in _PROFILES for more in _ENGINES)
_COUNTED: Final = re.compile(r"nvidia\.com/mig-(\d+)g\.\d+gb")


def is_known(name: str) -> bool:
    """Whether it is the resource of a slice that NVIDIA's GPUs have."""
    return name in _KNOWN


def likely(name: str) -> str:
    """The resource that is meant by a name which is none: `1g.10gb+me`, `mig-1g.10GB`."""
    profile = name.lower().replace("+", ".").rpartition("/")[2].removeprefix("mig-")
    found = get_close_matches(f"{PREFIX}{profile}", sorted(_KNOWN), n=1, cutoff=0.0)
    return found[0]


def slices(devices: Mapping[str, N]) -> dict[str, N]:
    """Those of some devices that are slices."""
    return {name: count for name, count in devices.items() if name.startswith(PREFIX)}


def gpus_of(devices: Mapping[str, float]) -> float:
    """How many GPUs of a queue KAI counts for slices: `nvidia.com/mig-3g.20gb` is 3 of them.

    Read from `pkg/scheduler/api/common_info/resources/mig.go`, alike from v0.7 to v0.17. Names with
    more to them (`nvidia.com/mig-1g.10gb.me`) count nothing there, and neither does anything else.
    """
    return sum(
        int(profile[1]) * count
        for name, count in devices.items()
        if name.startswith(PREFIX) and (profile := _COUNTED.fullmatch(name))
    )
