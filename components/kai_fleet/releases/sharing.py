"""How a KAI shares GPUs: the modes of its chart from v0.18 on, and the older switches for them.

Read from the chart's values and helpers of v0.18, the notes of v0.16.0 and v0.18.0, and the
binder's plugins. `docs/workloads.md` says what each mode guarantees, needs and costs.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from kai_fleet.releases import DISABLED, has_sharing_modes, version_key
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import value_at

SharingMode = Literal["Disabled", "NonMemoryEnforced", "HamiCore", "NvFractions"]
MODES: tuple[SharingMode, ...] = get_args(SharingMode)
NOT_ENFORCED: SharingMode = "NonMemoryEnforced"
HAMI_CORE: SharingMode = "HamiCore"
NV_FRACTIONS: SharingMode = "NvFractions"
# The first line of KAI that has a mode. A mode that is not here is in every version.
SINCE: Mapping[str, str] = {HAMI_CORE: "v0.16", NV_FRACTIONS: "v0.18"}

_HAMI_SWITCH = "binder.plugins.hamicore.enabled"


def mode_of_switch(on: bool) -> SharingMode:
    """The mode that `gpuSharing: true` or `false` stands for."""
    return NOT_ENFORCED if on else DISABLED


def has_mode(version: str, mode: str) -> bool:
    """Whether a KAI version can share GPUs in a mode; True for a text that is no mode."""
    return mode not in SINCE or version_key(version) >= version_key(SINCE[mode])


def sharing_values(version: str, mode: SharingMode) -> dict[str, object]:
    """The values of KAI's chart for a mode. `Disabled` has some too: v0.18 shares by default.

    Whether the version has the mode is not checked: `has_mode` tells it.
    """
    if not has_sharing_modes(version):
        values: dict[str, object] = {"global": {"gpuSharing": mode != DISABLED}}
        if mode == HAMI_CORE:
            values |= nested(_HAMI_SWITCH, True)
        return values
    if mode != NV_FRACTIONS:
        return {"global": {"gpuSharingMode": mode}}
    return {
        # The chart installs the operator that enforces memory limits.
        "global": {"gpuSharingMode": mode, "nvFractions": {"set": True}},
        # Pods get their devices by CDI and NRI: a RuntimeClass would show them every GPU.
        "admission": {"gpuFractionRuntimeClassName": ""},
    }


def mode_in(version: str, values: object) -> Any:
    """The mode that values of KAI's chart choose; None if they choose none.

    It is as written there, which may be no mode at all. From v0.18 on it is UNKNOWN if only the
    update knows it. Before, HamiCore alone counts as chosen: `global.gpuSharing` is not read.
    """
    if not has_sharing_modes(version):
        return HAMI_CORE if value_at(values, _HAMI_SWITCH) is True else None
    if value_at(values, "global.nvFractions.set") is True:
        return NV_FRACTIONS
    return value_at(values, "global.gpuSharingMode") or None
