"""Bounds of a Queue's spec from queue_bounds.yaml, for the settings, the rules and the guards."""

import re
from collections.abc import Mapping

from kai_fleet.releases import table

_TABLE = table("queue_bounds")
# The largest quota or limit by resource: cpu in millicores, memory in 10^6 bytes, gpu in GPUs. -1,
# which means unlimited, is allowed besides.
MOST: Mapping[str, int] = _TABLE["most"]
WEIGHT: int = _TABLE["weight"]  # the largest overQuotaWeight; the least is 0
PRIORITY: int = _TABLE["priority"]  # the largest; the least is 0
NAME: int = _TABLE["name"]  # the most characters of a queue's name
DURATIONS = ("preemptMinRuntime", "reclaimMinRuntime")


def is_duration(value: object) -> bool:
    """Whether a minimum run time is a text such as `1h30m`, which KAI decodes.

    It has h, m, s and ms in this order, each at most once, and no sign; or it is `0`. Go decodes
    more: `1h1h`, `5us` and `1000000h` are refused here.
    """
    return _matches(_TABLE["duration"], value)


def is_display_name_of(team: str, value: object) -> bool:
    """Whether a displayName is the team's name, or begins with it and a mark such as a space."""
    return _matches(display_pattern(team), value)


def _matches(pattern: str, value: object) -> bool:
    """Whether a value is a text that a pattern matches as a whole."""
    if not isinstance(value, str):
        return False
    return re.fullmatch(pattern, value) is not None


def display_pattern(team: str) -> str:
    """The regular expression, for Python and CEL, of displayNames of a team's queues.

    The team's name is taken as it is: no character of one has a meaning in a pattern.
    """
    return str(_TABLE["display"]).replace("TEAM", team)


def queue_spec_bounds() -> dict[str, str]:
    """The bounds of all specs of queues, as the policy `queue-specs` reads them: as texts."""
    bounds = {
        **MOST,
        "weight": WEIGHT,
        "priority": PRIORITY,
        "duration": _TABLE["duration"],
    }
    return {name: str(bound) for name, bound in bounds.items()}
