"""Paths of what is declared: keys of the stack file, URNs of resources, dotted keys of values."""

from collections.abc import Mapping
from typing import Any


def at(path: str, *fields: str) -> str:
    """The key below `path` for a stack file; a URN stays the URN of the whole resource."""
    if not path or path.startswith("urn:"):
        return path
    return ".".join((path, *fields))


def value_at(values: Any, dotted: str) -> Any:
    """The value at a dotted key; None where it, or a mapping above it, is not there."""
    for key in dotted.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values
