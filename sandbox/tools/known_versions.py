"""What tools on PATH told of their versions, kept: asking each of them takes a second or so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path


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
    kept = folder / f".version-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not kept.exists() or not kept.read_text():
        kept.write_text(ask())
    return kept.read_text()
