"""Tools that are already on PATH, taken only in a version that will do."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sandbox.tools.table import PathCheck
from sandbox.tools.told_versions import known, numbers


def find(name: str, check: PathCheck, cache: Path) -> tuple[Path, str] | None:
    """The first acceptable `name` on PATH, with its version.

    What lies in `cache` is passed over: it is our own, seen through a sandbox's PATH.
    """
    for path in _candidates(name, cache):
        version = known(cache, path, check)
        if check.accepts(numbers(version)):
            return path, version
    return None


def refused(name: str, check: PathCheck, cache: Path) -> list[str]:
    """Why what is on PATH is not used: one sentence for each. A companion goes with its tool."""
    low, below = (".".join(map(str, bound)) for bound in (check.oldest, check.below))
    return [
        f"{path} is {known(cache, path, check) or 'of no known version'}, "
        f"and {low} or newer, below {below}, is needed"
        for path in _candidates(name, cache)
        if not check.companion
    ]


def beside(name: str, other: Path, cache: Path) -> Path | None:
    """`name` on PATH, or in the folder where `other` really is."""
    found = next(_candidates(name, cache), None)
    neighbour = other.resolve().parent / name
    return found or (neighbour if os.access(neighbour, os.X_OK) else None)


def _candidates(name: str, cache: Path) -> Iterator[Path]:
    ours = cache.resolve()
    seen = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        real = Path(found).resolve() if found else None
        if found and real and real not in seen and not real.is_relative_to(ours):
            seen.add(real)
            yield Path(found)
