"""Packaged charts in place of the sandbox's stand-ins: the projects' own, for who has them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import typer


def packages(folder: Path | None) -> list[Path]:
    """The packages in a folder. Raises BadParameter where there is none."""
    if folder is None:
        return []
    found = sorted(folder.glob("*.tgz"))
    if not found:
        raise typer.BadParameter(
            f"{folder} holds no packaged chart; helm package writes NAME-VERSION.tgz"
        )
    return found


def put(given: Sequence[Path], charts: Path) -> str:
    """Put packages among the sandbox's, over those of the same name; what the page says of it."""
    if not given:
        return ""
    for package in given:
        shutil.copy(package, charts / package.name)
    return f"\n- Charts, not stand-ins: {', '.join(package.stem for package in given)}"
