"""Bounds of a Queue's spec from `queue_bounds.yaml`, for the settings, the rules and the guards."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.releases import table

_TABLE: Final = table("queue_bounds")
# The most of a quota or limit by resource, in KAI's units; -1 is unlimited.
MOST: Final[Mapping[str, int]] = _TABLE["most"]
WEIGHT: Final[int] = _TABLE["weight"]
PRIORITY: Final[int] = _TABLE["priority"]
NAME: Final[int] = _TABLE["name"]
DURATIONS: Final = ("preemptMinRuntime", "reclaimMinRuntime")


def is_duration(value: Any) -> bool:
    """Whether a minimum run time is a duration that KAI decodes, and not negative."""
    return isinstance(value, str) and re.fullmatch(_TABLE["duration"], value) is not None


def is_display_name_of(team: str, value: Any) -> bool:
    """Whether a displayName begins with the team's name."""
    return isinstance(value, str) and re.fullmatch(display_pattern(team), value) is not None


def display_pattern(team: str) -> str:
    """What a displayName of a team's queue looks like, for Python and for CEL."""
    return str(_TABLE["display"]).replace("TEAM", team)


def of_guards() -> dict[str, str]:
    """The bounds of every queue's spec, as the guards have them written in."""
    numbers = {**MOST, "weight": WEIGHT, "priority": PRIORITY}
    return {**{key: str(most) for key, most in numbers.items()}, "duration": _TABLE["duration"]}
