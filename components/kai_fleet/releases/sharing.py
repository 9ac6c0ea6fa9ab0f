"""How a KAI shares GPUs: the modes of its chart from v0.18 on, and the older switches for them.

Read from the chart's values and helpers of v0.18, the notes of v0.16.0 and v0.18.0, and the
binder's plugins. `docs/workloads.md` says what each mode guarantees, needs and costs.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from kai_fleet.releases import DISABLED, has_sharing_modes, version_key
from kai_fleet.values import value_at

SharingMode = Literal["Disabled", "NonMemoryEnforced", "HamiCore", "NvFractions"]
MODES: Final[tuple[SharingMode, ...]] = get_args(SharingMode)
NOT_ENFORCED: Final = "NonMemoryEnforced"
HAMI_CORE: Final = "HamiCore"
NV_FRACTIONS: Final = "NvFractions"
# The first line of KAI that has a mode; the others every version has.
SINCE: Final[Mapping[str, str]] = {HAMI_CORE: "v0.16", NV_FRACTIONS: "v0.18"}
# A pod's annotations in mode NvFractions; KAI's binder writes one more, with the devices.
FRACTIONS_KEY: Final = (
    r"nvidia\.com/container\.[a-z0-9]([-a-z0-9]*[a-z0-9])?\.gpu-memory\.(request|limit)"
)

_HAMI_SWITCH: Final = {"binder": {"plugins": {"hamicore": {"enabled": True}}}}


def of_switch(on: bool) -> SharingMode:
    """The mode that `gpuSharing: true` and `false` stand for."""
    return NOT_ENFORCED if on else DISABLED


def has_mode(version: str, mode: str) -> bool:
    """Whether a KAI can share GPUs in this way."""
    return mode not in SINCE or version_key(version) >= version_key(SINCE[mode])


def sharing_values(version: str, mode: SharingMode) -> dict[str, Any]:
    """The values of the chart for a mode. Written also where it is off: v0.18 shares if told
    nothing.
    """
    if not has_sharing_modes(version):
        older = _HAMI_SWITCH if mode == HAMI_CORE else {}
        return {"global": {"gpuSharing": mode != DISABLED}, **older}
    if mode != NV_FRACTIONS:
        return {"global": {"gpuSharingMode": mode}}
    return {
        # The chart brings the operator that enforces the memory.
        "global": {"gpuSharingMode": mode, "nvFractions": {"set": True}},
        # Devices come by CDI and NRI: a RuntimeClass would show every GPU of the node.
        "admission": {"gpuFractionRuntimeClassName": ""},
    }


def mode_in(version: str, values: Any) -> Any:
    """The mode that values of the chart choose by themselves; None where they choose none.

    As it is written there, which need not be a mode.
    """
    own = value_at(values, "global")
    if not has_sharing_modes(version):
        hami = value_at(values, "binder.plugins.hamicore.enabled")
        return HAMI_CORE if hami is True else None
    if value_at(own, "nvFractions.set") is True:
        return NV_FRACTIONS
    return value_at(own, "gpuSharingMode") or None
