"""The folder of the project: where `Pulumi.yaml` and the stack files are."""

from __future__ import annotations

from pathlib import Path
from typing import Final


def _project() -> Path:
    """The nearest project of this name from the working directory up, else this checkout."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "Pulumi.yaml"
        if file.is_file() and "name: kai-fleet" in file.read_text(encoding="utf-8").splitlines():
            return folder
    return Path(__file__).resolve().parents[2]


ROOT: Final = _project()
