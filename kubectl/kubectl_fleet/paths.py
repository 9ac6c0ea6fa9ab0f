"""Paths of what is declared: keys of the stack file, or URNs of resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at(path: str, *fields: str) -> str:
    """The key below `path` for a stack file; a URN stays the URN of the whole resource."""
    if not path or path.startswith("urn:"):
        return path
    return ".".join((path, *fields))


def value_at(values: Any, *path: str) -> Any:
    """The value at a path; None where it, or a mapping above it, is not there."""
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values
