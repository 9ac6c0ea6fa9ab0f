"""Declared values: reading them at a path, and UNKNOWN for what only the update will know."""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final


class Unknown(Enum):
    """The type of UNKNOWN."""

    UNKNOWN = "unknown until the update"

    def __repr__(self) -> str:
        """Short, as it appears in messages of failed tests."""
        return "UNKNOWN"


# It may stand anywhere: the model's types are those of values that are known.
UNKNOWN: Final[Any] = Unknown.UNKNOWN


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
    """A string, UNKNOWN or None; numbers as YAML would have written them."""
    if value is UNKNOWN or value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number(value: Any) -> Any:
    """A finite number, UNKNOWN, or None for anything else."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, bool) or value is None:
        return None
    try:
        read = float(value if isinstance(value, int | float) else str(value))
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def flag(value: Any, unset: Any) -> Any:
    """A boolean, `unset` where there is none."""
    if value is UNKNOWN:
        return UNKNOWN
    return unset if value is None else str(value).lower() == "true"


def mapping(value: Any) -> Any:
    """A mapping, UNKNOWN, or an empty one."""
    if value is UNKNOWN:
        return UNKNOWN
    return value if isinstance(value, Mapping) else {}


def pairs(value: Any) -> Mapping[Any, Any]:
    """A mapping; an empty one in place of anything else, UNKNOWN among it."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[object]:
    """The elements of a list; none of anything else."""
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
