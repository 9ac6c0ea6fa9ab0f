"""Minimum run times are durations that Go parses."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from kai_fleet.fleet.amounts import exact
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = "KAI takes Go durations, which know no days and no weeks: 1d does not parse (Q4)."
REMEDY = "Write hours, minutes and seconds: 24h for a day, 168h for a week, 1h30m."

_GO_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONG_PART: Final = re.compile(
    r"([0-9]+(?:\.[0-9]*)?)\s*(weeks?|days?|hours?|hrs?|mins?|minutes?|secs?|seconds?|[wdhms])"
)
_MICRO: Final = Fraction(1, 10**6)
_SECONDS: Final[Mapping[str, int | Fraction]] = {
    **{"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": Fraction(1, 10**3)},
    **{"us": _MICRO, "µs": _MICRO, "μs": _MICRO, "ns": Fraction(1, 10**9)},
}
_LONGEST: Final = "2562047h"


def check(cluster: DeclaredCluster) -> Problems:
    """The two minimum run times of each queue."""
    for queue in cluster.queues:
        for key, value in (
            ("preemptMinRuntime", queue.preempt_min_runtime),
            ("reclaimMinRuntime", queue.reclaim_min_runtime),
        ):
            if value is None:
                continue
            place = of_queue(queue, cluster, key)
            if value is UNKNOWN:
                yield place.undecided(f"the value of {key} is known")
            elif not isinstance(value, str) or not _is_go_duration(value):
                meant = _as_go_duration(value) or "24h"
                yield place.mandatory(
                    f"has {key}: {value}, which is not a duration for KAI (units are h, m and s);"
                    f" write {key}: {meant}"
                )
            elif _overflows(value):
                yield place.mandatory(
                    f"has {key}: {value}, longer than a duration can be; write {key}:"
                    f" {_LONGEST} (292 years) or less"
                )


def _is_go_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes it: `90s`, `1h30m`; not `1d`."""
    bare = text.removeprefix("+").removeprefix("-")
    return bare == "0" or (bool(bare) and _GO_PART.sub("", bare) == "")


def _overflows(text: str) -> bool:
    """Whether a Go duration is longer than the 64 bits of nanoseconds that it is kept in."""
    if len(text) > 60:
        return True
    parts = _GO_PART.findall(text)
    return sum(Fraction(number or 0) * _SECONDS[unit] for number, unit in parts) * 10**9 >= 2**63


def _as_go_duration(value: object) -> str | None:
    """What was probably meant, as Go takes it: `1d` is `24h`, a bare 90 is `90s`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _hours(Fraction(value))
    if not isinstance(value, str):
        return None
    text = value.strip().lower()[:60]
    if re.fullmatch(r"[0-9]+", text):
        return _hours(Fraction(int(text)))
    parts = _LONG_PART.findall(text)
    if not parts or _LONG_PART.sub("", text).strip(" ,") != "":
        return None
    return _hours(sum((Fraction(n) * _SECONDS[unit[0]] for n, unit in parts), Fraction(0)))


def _hours(seconds: Fraction) -> str:
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{exact(float(seconds))}s"
