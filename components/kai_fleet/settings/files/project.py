"""The folder of the project, where `Pulumi.yaml` and the stack files are; what is run in it."""

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parents[4]
CHECKOUT: Final = _HERE if (_HERE / "sandbox" / "lifecycle.py").is_file() else None
"""The checkout that this package is imported from; None where it is installed from a wheel."""


def _project() -> Path:
    """The nearest project of this name from the working directory up.

    Else the working directory where it has stack files, or where there is no checkout.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "Pulumi.yaml"
        if file.is_file() and b"name: kai-fleet" in file.read_bytes().splitlines():
            return folder
    return here if CHECKOUT is None or any(here.glob("Pulumi.*.yaml")) else CHECKOUT


ROOT: Final = _project()
FLEET: Final = ".venv/bin/fleet"


def update_command(stack: str) -> str:
    """What a user runs to update a stack: without a checkout there is no Makefile."""
    return f"{FLEET} up --stack {stack}" if CHECKOUT is None else f"make up STACK={stack}"


def preview_command(stack: str, *, details: bool = False) -> str:
    """What a user runs to preview it; with `details`, every property."""
    if CHECKOUT is None:
        return f"{FLEET} preview --stack {stack}{' --details' if details else ''}"
    return f"make preview STACK={stack}{' DETAILS=1' if details else ''}"
