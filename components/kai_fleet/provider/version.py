"""The version of this program, which pyproject.toml says."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """For example `0.3.0`, as the package is installed."""
    return metadata.version("kai-fleet")
