"""Where a file backend (`file://…`) keeps a stack: its state, its lock, older versions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kai_fleet_cli.stack_file.reading import PROJECT

_SCHEME: Final = "file://"


def address(environment: Mapping[str, str]) -> str:
    """The backend's URL; "" where it is the one of `pulumi login`."""
    return {**os.environ, **environment}.get("PULUMI_BACKEND_URL", "")


def folder(environment: Mapping[str, str]) -> Path | None:
    """Its folder; None for every other backend."""
    url = address(environment)
    if not url.startswith(_SCHEME):
        return None
    return Path(url.removeprefix(_SCHEME)).expanduser() / ".pulumi"


def state_file(stack: str, environment: Mapping[str, str]) -> Path | None:
    """The file with a stack's state."""
    base = folder(environment)
    return None if base is None else base / "stacks" / PROJECT / f"{stack}.json"


def locks(stack: str, environment: Mapping[str, str]) -> list[Path]:
    """The locks on a stack: one, or none."""
    base = folder(environment)
    return [] if base is None else sorted((base / "locks").glob(f"*/{PROJECT}/{stack}/*.json"))


def older(stack: str, environment: Mapping[str, str]) -> list[Path]:
    """Earlier versions, newest first: the one before the last write, then those of each update."""
    file = state_file(stack, environment)
    base = folder(environment)
    if file is None or base is None:
        return []
    before = file.with_name(f"{file.name}.bak")
    others = [
        *base.glob(f"history/{PROJECT}/{stack}/*.checkpoint.json"),
        *base.glob(f"backups/{PROJECT}/{stack}/*.json"),
    ]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return [before, *others] if before.exists() else others


def cut_attributes(stack: str, environment: Mapping[str, str]) -> list[Path]:
    """The empty ones of the small files `….attrs` that the backend keeps beside a stack's.

    It writes them in place: a kill leaves an empty one, and the CLI says EOF of a state that is
    whole. It does without one that is not there. Those beside other stacks' states count as well:
    a team stack reads its platform's.
    """
    file, base = state_file(stack, environment), folder(environment)
    if file is None or base is None:
        return []
    beside = [*file.parent.glob("*.attrs")]
    for kind in ("locks/*", "history", "backups"):
        beside += base.glob(f"{kind}/{PROJECT}/{stack}/*.attrs")
    return [attributes for attributes in beside if attributes.stat().st_size == 0]


def read(file: Path) -> dict[str, Any] | None:
    """The deployment in a state file; None where there is no readable one.

    An update writes its key as `latest`, an import as `Latest`.
    """
    try:
        checkpoint = json.loads(file.read_text())["checkpoint"]
        found = {key.lower(): value for key, value in checkpoint.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    latest = found.get("latest")
    if latest is None and "stack" in found:
        return {}  # a stack that was never updated
    return latest if isinstance(latest, dict) else None
