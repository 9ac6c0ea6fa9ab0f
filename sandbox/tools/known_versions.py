"""What tools on PATH told of their versions, kept: asking each of them takes a second or so."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

_FILE: Final = "versions.json"
_MOST: Final = 200  # entries; old ones go when there are more


def known(folder: Path, tool: Path, ask: Callable[[], str]) -> str:
    """The version of a tool: as it was told when this very file was asked, or asked now.

    "" is asked again each time: a tool that tells none may be in the making.
    """
    try:
        real = tool.resolve()
        about = real.stat()
    except OSError:
        return ask()
    key = f"{real} {about.st_mtime_ns} {about.st_size}"
    kept = _read(folder / _FILE)
    if key in kept:
        return kept[key]
    told = ask()
    if told:
        _write(folder / _FILE, dict([*kept.items(), (key, told)][-_MOST:]))
    return told


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, kept: dict[str, str]) -> None:
    """Whole or not at all. Of two at once one wins, and the other's answer is asked for again."""
    handle, fresh = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    with os.fdopen(handle, "w") as out:
        json.dump(kept, out, indent=1)
    Path(fresh).replace(file)
