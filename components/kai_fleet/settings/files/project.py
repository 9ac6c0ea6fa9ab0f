"""The folder of the project: where `Pulumi.yaml` and the stack files are."""

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
        if file.is_file() and "name: kai-fleet" in file.read_text(encoding="utf-8").splitlines():
            return folder
    return here if CHECKOUT is None or any(here.glob("Pulumi.*.yaml")) else CHECKOUT


ROOT: Final = _project()
