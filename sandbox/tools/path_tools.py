"""Tools that are already on PATH, taken only in a version that will do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from sandbox.tools import known_versions, plugin_version
from sandbox.tools.specs import PathCheck, Version

ANSWER_SECONDS: Final = 20.0
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def find(name: str, check: PathCheck, cache: Path) -> tuple[Path, str] | None:
    """The first acceptable `name` on PATH, with its version.

    What lies in `cache` is passed over: it is our own, seen through a sandbox's PATH.
    """
    for path in _candidates(name, cache):
        version = _version_of(path, check, cache)
        if check.accepts(numbers(version)):
            return path, version
    return None


def refused(name: str, check: PathCheck, cache: Path) -> list[str]:
    """Why what is on PATH is not used: one sentence for each."""
    low, below = (".".join(map(str, bound)) for bound in (check.oldest, check.below))
    return [
        f"{path} is {_version_of(path, check, cache) or 'of no known version'}, "
        f"and {low} or newer, below {below}, is needed"
        for path in _candidates(name, cache)
        if check.ask or check.plugin
    ]


def beside(name: str, other: Path, cache: Path) -> Path | None:
    """`name` on PATH, or in the folder where `other` really is."""
    found = next(_candidates(name, cache), None)
    neighbour = other.resolve().parent / name
    return found or (neighbour if os.access(neighbour, os.X_OK) else None)


def _version_of(path: Path, check: PathCheck, cache: Path) -> str:
    return known_versions.known(cache, path, partial(told, path, check))


@lru_cache
def told(path: Path, check: PathCheck) -> str:
    """The version that a tool tells, such as `1.34.4`; empty when it tells none."""
    if check.plugin:
        said = plugin_version.ask(path)
    else:
        try:
            done = subprocess.run(
                [path, *check.ask],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=ANSWER_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        said = done.stdout
    found = _VERSION.search(said)
    return found[0] if found else ""


def _candidates(name: str, cache: Path) -> Iterator[Path]:
    ours = cache.resolve()
    seen = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        real = Path(found).resolve() if found else None
        if found and real and real not in seen and not real.is_relative_to(ours):
            seen.add(real)
            yield Path(found)


def numbers(version: str) -> Version:
    """`1.34.4` → `(1, 34, 4)`; nothing for what tells no version."""
    return tuple(int(part) for part in version.split(".")) if version else ()
