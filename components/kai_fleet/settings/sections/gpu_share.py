"""GPUs: how a workload asks for them, how a KAI shares them, and how many a team may hold."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from kai_fleet.releases import mig
from kai_fleet.releases.keys import DEVICES, FRACTION, GPU_RESOURCES, MEMORY
from kai_fleet.releases.sharing import SharingMode, of_switch
from kai_fleet.settings.sections.kubernetes import number_of, quantity
from kai_fleet.settings.sections.models import Strict

_MEBIBYTE: Final = 2**20
_MOST: Final = 1_000_000
_KINDS: Final = "{nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 14}"
_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def _fraction(value: Any) -> float:
    """A part of one GPU: above 0, below 1, in four digits at most. Raises ValueError."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent and 0 < float(percent.group(1)) < 100:
        raise ValueError(f"is {value!r}; write {float(percent.group(1)) / 100:g}")
    number = quantity(value, "a part of one GPU such as 0.5")
    if number >= 1:
        whole = f"devices: {int(number)}" if number == int(number) else "devices with whole GPUs"
        raise ValueError(f"is {value}, and a fraction is below 1; write {whole} in its place")
    if number < Decimal("0.01"):
        raise ValueError(f"is {value}; write at least 0.01, or drop gpu for a pod without a GPU")
    return float(round(number, 4))


def _memory(value: Any) -> int:
    """MiB of GPU memory, rounded up. Raises ValueError."""
    amount, number = quantity(value, "GPU memory such as 2000Mi"), number_of(value)
    if not amount:
        raise ValueError(f"is {value}; write 2000Mi, or drop gpu for a pod without a GPU")
    if amount < _MEBIBYTE:
        raise ValueError(f"is {value}, less than a mebibyte; write {number}Mi or {number}Gi")
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
        fraction = None if self.fraction is None else plain(self.fraction)
        found = {FRACTION: fraction, MEMORY: self.memory, DEVICES: self.on_devices}
        return {key: str(value) for key, value in found.items() if value is not None}


def plain(value: float) -> str:
    """A fraction as people write it: `0.7`, never `7e-01`."""
    return format(Decimal(str(value)).normalize(), "f")


def share_mistakes(share: GpuShare) -> Iterator[tuple[str, str]]:
    """What does not fit together in one share: (key, sentence)."""
    given = [key for key in ("devices", "fraction", "memory") if getattr(share, key) is not None]
    if not given:
        yield "gpu", "asks for nothing; write devices, fraction or memory, or drop gpu"
    elif len(given) > 1:
        yield "gpu", f"has {' and '.join(given)}; write one of them"
    elif share.slice is not None and share.shared:
        yield "gpu.slice", "is for devices: a slice is not shared; write devices: 1"
    elif share.on_devices is not None and not share.shared:
        yield "gpu.onDevices", "is for a fraction or memory; write devices alone for whole GPUs"


def _or_switch(schema: dict[str, Any]) -> None:
    """The JSON Schema: true, false, or the mapping."""
    schema["anyOf"] = [{"type": "boolean"}, {"$ref": schema.pop("$ref")}]


class GpuSharing(Strict):
    """How pods share a GPU: true (NonMemoryEnforced), false (Disabled), or a mode."""

    mode: SharingMode = Field(
        description="Disabled; NonMemoryEnforced: by agreement; HamiCore (KAI from v0.16) and"
        " NvFractions (from v0.18): a pod gets no more GPU memory than it asks for.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_switch(cls, value: Any) -> Any:
        return {"mode": of_switch(value)} if isinstance(value, bool) else value


Sharing = Annotated[
    GpuSharing,
    Field(
        description="Fractions of a GPU: true unless set. A stack file may say {mode: …} too.",
        json_schema_extra=_or_switch,
    ),
]


def sharing() -> GpuSharing:
    """Where nothing is written: on, by agreement."""
    return GpuSharing(mode=of_switch(True))


def _gpus(value: Any) -> Any:
    if not isinstance(value, Mapping):
        _check(value, "is", f", or how many of each kind, such as {_KINDS}")
        return value
    for name, count in value.items():
        if name not in GPU_RESOURCES and not mig.is_known(str(name)):
            raise ValueError(
                f"has {str(name)!r}, which is no GPU and no MIG profile that is known; write"
                f" {mig.likely(str(name))}, or {GPU_RESOURCES[0]} for whole GPUs; a profile that is"
                " newer, and other devices, in isolation.devices"
            )
        _check(count, f"has {name}:")
    return dict(value)


def _check(value: Any, words: str, also: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        shown = "empty" if value is None else repr(value)[:60]
        raise ValueError(f"{words} {shown}; write a whole number{also}")
    if not 0 <= value <= _MOST:
        end = "0 or more" if value < 0 else f"{_MOST} or less"
        raise ValueError(f"{words} {value}; write {end}")


_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": _MOST}
Gpus = Annotated[
    int | dict[str, int],
    BeforeValidator(_gpus),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
]


def together(pools: Iterable[int | Mapping[str, int]]) -> int | dict[str, int]:
    """The sum of several, by kind where one of them is."""
    every = list(pools)
    if all(isinstance(gpus, int) for gpus in every):
        return sum(map(whole, every))
    total: Counter[str] = Counter()
    for gpus in every:
        total.update({GPU_RESOURCES[0]: gpus} if isinstance(gpus, int) else gpus)
    return dict(total)


def whole(gpus: int | Mapping[str, int]) -> int:
    """The whole GPUs."""
    return gpus if isinstance(gpus, int) else sum(gpus.get(name, 0) for name in GPU_RESOURCES)


def slices(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> dict[str, int]:
    """The slices by the names of their resources; `devices` are the other devices of a team."""
    return mig.slices(devices) | ({} if isinstance(gpus, int) else mig.slices(gpus))


def counted(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> int:
    """All of them as KAI counts GPUs of a queue, with the slices among a team's other devices."""
    return whole(gpus) + int(mig.gpus_of(slices(gpus, devices)))
