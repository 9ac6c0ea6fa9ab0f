"""Read declared values by path and type.

A preview does not know some values: only the update does. UNKNOWN replaces each of them, and
`Maybe[T]` is the type of a value that it may replace.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Unknown(Enum):
    """The type of UNKNOWN, its only value."""

    UNKNOWN = "not known before the update"


UNKNOWN = Unknown.UNKNOWN
Maybe: TypeAlias = T | Unknown


def known_or(value: Maybe[T], other: U) -> T | U:
    """The value; `other` if it is UNKNOWN."""
    return other if value is UNKNOWN else value


def get(value: object, *keys: str) -> Any:
    """The value below a path of keys.

    UNKNOWN if any value on the path is. None if a key is absent, or a value above it is no mapping.
    """
    for key in keys:
        if value is UNKNOWN:
            return UNKNOWN
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text(value: Any) -> Maybe[str] | None:
    """The value as a string, a whole float as YAML writes it: `2.0` as `2`.

    UNKNOWN and None stay as they are. A boolean is `True` or `False`.
    """
    if value is None or isinstance(value, Unknown | str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def quoted(value: object) -> str:
    """A value as a YAML string between quotes: `"true"` for a boolean, `"0.5"` for a number.

    Quotes and backslashes in a text are not escaped. None and UNKNOWN have no such text.
    """
    if isinstance(value, bool):
        value = str(value).lower()
    return f'"{text(value)}"'


def number(value: Any) -> Maybe[float] | None:
    """The value, which may be a text, as a finite float.

    UNKNOWN stays. None for a boolean, an infinite number, and what is no number.
    """
    if isinstance(value, Unknown):
        return value
    if isinstance(value, bool):
        return None
    try:
        amount = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if math.isfinite(amount) else None


def flag(value: Any, unset: Maybe[bool]) -> Maybe[bool]:
    """The value as a boolean: True for `true` in any case, else False.

    UNKNOWN stays; `unset` if the value is None.
    """
    if isinstance(value, Unknown):
        return value
    if value is None:
        return unset
    return str(value).lower() == "true"


def mapping(value: object) -> Maybe[Mapping[str, Any]]:
    """The value if it is a mapping or UNKNOWN, else an empty mapping."""
    if value is UNKNOWN:
        return UNKNOWN
    return pairs(value)


def pairs(value: object) -> Mapping[Any, Any]:
    """The value if it is a mapping, else, for UNKNOWN too, an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[object]:
    """The value if it is a list or tuple, else, for a text or UNKNOWN too, an empty sequence."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    return ()


def whole_numbers(value: Any) -> Any:
    """A copy of a JSON value with an integer in place of each whole float, at any depth."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole_numbers(element) for element in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def in_base64(text: str) -> str:
    """The text in base64, as the data of a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def at(path: str, *fields: str) -> str:
    """The key path of fields below the key `path` of a stack file.

    An empty path stays. A URN stays too: it already names the whole resource.
    """
    if not path or path.startswith("urn:"):
        return path
    return ".".join((path, *fields))


def value_at(values: object, dotted: str) -> Any:
    """The value at keys with dots between them, as `get` reads it."""
    return get(values, *dotted.split("."))
