"""Amounts of a resource in the words of whoever wrote them, and Go durations."""

import re
from fractions import Fraction

from kubectl_fleet.declared.queues import Resource

_UNITS = {"cpu": "millicores", "memory": "MB", "gpu": "GPUs"}
_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_LONG_PART = re.compile(
    r"([0-9]+(?:\.[0-9]*)?)\s*(weeks?|days?|hours?|hrs?|mins?|minutes?|secs?|seconds?|[wdhms])"
)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
LONGEST_DURATION = "2562047h"
_STEPS = ((10**6, "T"), (10**3, "G"))


def written(resource: Resource, amount: float, path: str) -> str:
    """An amount in KAI's units as its author would write it.

    A Queue takes bare numbers, so the unit follows in words; a stack file takes quantities.
    """
    if amount == -1:
        return "-1 (unlimited)" if path.startswith("urn:") else "unlimited"
    number = plain(amount)
    if resource == "gpu":
        return number
    if path.startswith("urn:"):
        return f"{number} ({_UNITS[resource]})"
    if resource == "cpu":
        return plain(amount / 1000) if amount % 1000 == 0 else f"{number}m"
    for size, unit in _STEPS:
        if amount and amount % size == 0:
            return plain(amount / size) + unit
    return f"{number}M"


def plain(number: float) -> str:
    """A number without an exponent or zeros behind the point."""
    return f"{number:.10f}".rstrip("0").rstrip(".") if number % 1 else str(int(number))


def is_go_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes it: `90s`, `1h30m`; not `1d`."""
    bare = text.removeprefix("+").removeprefix("-")
    return bare == "0" or (bool(bare) and _GO_PART.sub("", bare) == "")


def overflows(text: str) -> bool:
    """Whether a Go duration is longer than the 64 bits of nanoseconds that it is kept in."""
    if len(text) > 60:
        return True
    parts = _GO_PART.findall(text)
    return sum(Fraction(number or 0) * _NANOSECONDS[unit] for number, unit in parts) >= 2**63


def as_go_duration(value: object) -> str | None:
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
    return f"{plain(float(seconds))}s"
