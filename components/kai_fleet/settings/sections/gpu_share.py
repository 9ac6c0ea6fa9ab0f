"""GPUs: how a KAI shares them, and how many a team may hold."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from kai_fleet.releases import mig
from kai_fleet.releases.keys import GPU_RESOURCES
from kai_fleet.releases.sharing import SharingMode, of_switch
from kai_fleet.settings.sections.models import Strict, short_for

_MOST: Final = 1_000_000
_KINDS: Final = "{nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 14}"


class GpuSharing(Strict):
    """How pods share a GPU: true (NonMemoryEnforced), false (Disabled), or a mode."""

    mode: SharingMode
    """Disabled; NonMemoryEnforced: by agreement; HamiCore, NvFractions: memory is held to it."""


def _or_switch(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"type": "boolean"}, {"$ref": schema.pop("$ref")}]


Sharing = Annotated[
    GpuSharing,
    short_for("mode", bool, of_switch),
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
        return _count(value, "is", f", or how many of each kind, such as {_KINDS}")
    for name in value:
        if name not in GPU_RESOURCES and not mig.is_known(str(name)):
            raise ValueError(
                f"has {str(name)!r}, which is no GPU and no MIG profile that is known; write"
                f" {mig.likely(str(name))}, or {GPU_RESOURCES[0]} for whole GPUs; a profile that is"
                " newer, and other devices, in isolation.devices"
            )
    return {name: _count(count, f"has {name}:") for name, count in value.items()}


def _count(value: Any, cause: str, or_else: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        shown = "empty" if value is None else repr(value)[:60]
        raise ValueError(f"{cause} {shown}; write a whole number{or_else}")
    if not 0 <= value <= _MOST:
        end = "0 or more" if value < 0 else f"{_MOST} or less"
        raise ValueError(f"{cause} {value}; write {end}")
    return value


_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": _MOST}
Gpus = Annotated[
    int | dict[str, int],
    BeforeValidator(_gpus),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
]


def together(pools: Iterable[int | Mapping[str, int]]) -> int | dict[str, int]:
    """The sum of several, by kind where one of them is."""
    every, total = list(pools), Counter[str]()
    for gpus in every:
        total.update({GPU_RESOURCES[0]: gpus} if isinstance(gpus, int) else gpus)
    by_kind = any(isinstance(gpus, Mapping) for gpus in every)
    return dict(total) if by_kind else total[GPU_RESOURCES[0]]


def slices(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> dict[str, int]:
    """The MIG slices, by their resources' names; `devices` are the other devices of a team."""
    return mig.slices(devices) | ({} if isinstance(gpus, int) else mig.slices(gpus))


def counted(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> int:
    """All of them as KAI counts GPUs of a queue: a slice of profile 3g is three."""
    whole = gpus if isinstance(gpus, int) else sum(gpus.get(name, 0) for name in GPU_RESOURCES)
    return whole + int(mig.gpus_of(slices(gpus, devices)))
