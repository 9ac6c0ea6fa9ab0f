"""Read declared values by path and type, and quantities; UNKNOWN: only the update knows it."""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Final

# Typed Any, because it can be in place of any value.
UNKNOWN: Final[Any] = Enum("Unknown", "UNKNOWN").UNKNOWN  # type: ignore[attr-defined]


def get(value: Any, *keys: str) -> Any:
    """The value below a path of keys: UNKNOWN if any step is, None if one is absent."""
    for key in keys:
        if value is UNKNOWN:
            return UNKNOWN
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text(value: Any) -> str | None:
    """A string, UNKNOWN or None; numbers as in YAML: `2.0` as `2`."""
    if value is UNKNOWN or value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number(value: Any) -> Any:
    """A finite number, UNKNOWN, or None for anything else."""
    if value is UNKNOWN:
        return UNKNOWN
    try:
        read = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def flag(value: Any, unset: Any) -> Any:
    """A boolean, `unset` where there is none."""
    if value is UNKNOWN:
        return UNKNOWN
    return unset if value is None else str(value).lower() == "true"


def mapping(value: Any) -> Any:
    """A mapping, UNKNOWN, or an empty one."""
    return value if value is UNKNOWN else pairs(value)


def pairs(value: Any) -> Mapping[Any, Any]:
    """A mapping; an empty one for anything else, also for UNKNOWN."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[object]:
    """The elements of a list; none for anything else."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def whole_numbers(value: Any) -> Any:
    """The value with integers in place of floats that are whole, at any depth."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def at(path: str, *fields: str) -> str:
    """The key below `path` for a stack file; a URN stays the URN of the whole resource."""
    if not path or path.startswith("urn:"):
        return path
    return ".".join((path, *fields))


def value_at(values: Any, dotted: str) -> Any:
    """The value at a dotted key, as `get` reads it."""
    return get(values, *dotted.split("."))


# Kubernetes quantities: `16`, `"500m"`, `64Gi`.
WORD: Final = "unlimited"
QUANTITY: Final = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?"
)
_SUFFIX: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(10) ** (3 * i) for i, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(2) ** (10 * i) for i, letter in enumerate("KMGTPE", start=1)},
}
_MOST: Final = Decimal(10) ** 18  # what a Kubernetes quantity can hold at least


def parse_quantity(value: Any) -> Decimal:
    """The number of a Kubernetes quantity in its base unit: cores, bytes or devices.

    Raises ValueError, with a predicate such as `"5x" is no Kubernetes quantity`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        kinds = {bool: "true or false", dict: "a mapping", list: "a list", type(None): "empty"}
        raise ValueError(f"is no quantity but {kinds.get(type(value), type(value).__name__)}")
    written = f"{value:.15g}" if isinstance(value, float) else str(value)[:64].strip()
    if written.startswith("-"):
        raise ValueError(f"{written} is negative")
    if (match := QUANTITY.fullmatch(written)) is None:
        raise ValueError(f"{written!r} is no Kubernetes quantity")
    number, suffix = match.groups(default="")
    amount = Decimal(number) * _SUFFIX[suffix] if suffix in _SUFFIX else Decimal(written)
    if amount > _MOST:
        raise ValueError(f"{written!r} is larger than any cluster")
    return amount
