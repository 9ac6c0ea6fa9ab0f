"""How a workload asks for GPUs: whole ones, a fraction of one, or an amount of its memory."""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from kai_fleet.settings.sections.model import Strict
from kubectl_fleet.quantities import parse_quantity
from kubectl_fleet.releases import mig

_MEBIBYTE: Final = 2**20
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def _fraction(value: Any) -> float:
    """A part of one GPU: above 0, below 1, in four digits at most. Raises ValueError."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent and 0 < float(percent.group(1)) < 100:
        raise ValueError(f"is {value!r}; write {float(percent.group(1)) / 100:g}")
    try:
        number = parse_quantity(value)
    except ValueError as why:
        raise ValueError(f"{why}; write a part of one GPU such as 0.5") from None
    if number >= 1:
        whole = f"devices: {int(number)}" if number == int(number) else "devices with whole GPUs"
        raise ValueError(f"is {value}, and a fraction is below 1; write {whole} in its place")
    if number < Decimal("0.01"):
        raise ValueError(f"is {value}; write at least 0.01, or drop gpu for a pod without a GPU")
    return float(round(number, 4))


def _memory(value: Any) -> int:
    """MiB of GPU memory, rounded up. Raises ValueError."""
    try:
        amount = parse_quantity(value)
    except ValueError as why:
        raise ValueError(f"{why}; write GPU memory such as 2000Mi") from None
    if amount < _MEBIBYTE:
        raise ValueError(f"is {value} bytes; write {value}Mi or {value}Gi")
    return math.ceil(amount / _MEBIBYTE)


Fraction = Annotated[
    float,
    BeforeValidator(_fraction),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
GpuMemory = Annotated[
    int,
    BeforeValidator(_memory),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+[KMGT]i?$"}),
]


def _slice(name: str) -> str:
    if not mig.is_known(name):
        write = f"write {mig.likely(name)}"
        raise ValueError(f"is {name!r}, which is no MIG profile that is known; {write}")
    return name


SliceName = Annotated[str, AfterValidator(_slice)]


class GpuShare(Strict):
    """One of devices, fraction and memory."""

    devices: int | None = Field(default=None, ge=1, le=64, description="Whole GPUs for each pod.")
    slice: SliceName | None = Field(
        default=None,
        description="In place of whole GPUs, as devices: nvidia.com/mig-1g.10gb.",
    )
    fraction: Fraction | None = Field(
        default=None,
        description="Part of one GPU, such as 0.5. Its memory is bound as gpuSharing says.",
    )
    memory: GpuMemory | None = Field(
        default=None, description="Memory of one GPU, such as 2000Mi; the rest is for others."
    )
    on_devices: int | None = Field(
        default=None, ge=2, le=64, description="Take the fraction or memory on so many GPUs."
    )

    @property
    def shared(self) -> bool:
        """Whether it is a part of a GPU, which only KAI can give."""
        return self.devices is None

    def in_words(self) -> str:
        """For a table: `2 whole`, `0.7 of one`, `2000 MiB of each of 2`."""
        if self.devices is not None:
            return f"{self.devices} {(self.slice or 'whole').rpartition('/')[2]}"
        part = f"{self.memory} MiB" if self.fraction is None else plain(self.fraction)
        return f"{part} of each of {self.on_devices}" if self.on_devices else f"{part} of one"

    def annotations(self) -> dict[str, str]:
        """What KAI reads of it; strings, as the API server wants them (W3, W5)."""
        found: dict[str, str] = {}
        if self.fraction is not None:
            found["gpu-fraction"] = plain(self.fraction)
        if self.memory is not None:
            found["gpu-memory"] = str(self.memory)
        if self.on_devices is not None:
            found["gpu-fraction-num-devices"] = str(self.on_devices)
        return found


def plain(value: float) -> str:
    """A fraction as people write it: `0.7`, never `7e-01`."""
    return format(Decimal(str(value)).normalize(), "f")


def share_mistakes(share: GpuShare) -> Iterator[tuple[str, str]]:
    """What does not fit together in one share: (key, sentence)."""
    given = [key for key in ("devices", "fraction", "memory") if key in share.model_fields_set]
    if not given:
        yield "gpu", "asks for nothing; write devices, fraction or memory, or drop gpu"
    elif len(given) > 1:
        yield "gpu", f"has {' and '.join(given)}; write one of them"
    elif share.slice is not None and share.shared:
        yield "gpu.slice", "is for devices: a slice is not shared; write devices: 1"
    elif share.on_devices is not None and not share.shared:
        yield "gpu.onDevices", "is for a fraction or memory; write devices alone for whole GPUs"
