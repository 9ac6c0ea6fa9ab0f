"""Go durations, as KAI reads the minimum run times of a queue."""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from kai_fleet.fleet.amounts import exact

_GO_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONG_PART: Final = re.compile(
    r"([0-9]+(?:\.[0-9]*)?)\s*(weeks?|days?|hours?|hrs?|mins?|minutes?|secs?|seconds?|[wdhms])"
)
_MICRO: Final = Fraction(1, 10**6)
_SECONDS: Final[Mapping[str, int | Fraction]] = {
    **{"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": Fraction(1, 10**3)},
    **{"us": _MICRO, "µs": _MICRO, "μs": _MICRO, "ns": Fraction(1, 10**9)},
}


def is_go_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes it: `90s`, `1h30m`; not `1d`."""
    bare = text.removeprefix("+").removeprefix("-")
    return bare == "0" or (bool(bare) and _GO_PART.sub("", bare) == "")


def is_too_long(text: str) -> bool:
    """Whether a Go duration is longer than the 64 bits of nanoseconds that it is kept in."""
    return len(text) > 60 or _total(_GO_PART.findall(text)) * 10**9 >= 2**63


def _total(parts: Iterable[tuple[str, str]]) -> Fraction:
    every = (Fraction(number or 0) * _SECONDS[unit] for number, unit in parts)
    return sum(every, Fraction(0))


def likely_duration(value: object) -> str | None:
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
    return _hours(_total((number, unit[0]) for number, unit in parts))


def _hours(seconds: Fraction) -> str:
    for unit in ("h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{exact(float(seconds))}s"
