"""Paths of what is declared: keys of the stack file, or URNs of resources."""

from __future__ import annotations


def at(path: str, *fields: str) -> str:
    """The key below `path` for a stack file; a URN stays the URN of the whole resource."""
    if not path or path.startswith("urn:"):
        return path
    return ".".join((path, *fields))
