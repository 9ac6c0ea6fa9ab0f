"""The folder of the project, with `Pulumi.yaml` and the stack files, and commands to run there."""

from pathlib import Path

from kai_fleet.names import FLEET

_HERE = Path(__file__).resolve().parents[2]
CHECKOUT = _HERE if (_HERE / "sandbox" / "lifecycle.py").is_file() else None
"""The checkout that has this package; None if the package is installed from a wheel."""


def _project() -> Path:
    """The nearest folder, from the working directory up, with the Pulumi.yaml of this project.

    If there is none, the working directory if it has stack files, else the checkout, else the
    working directory.
    """
    working_directory = Path.cwd()
    for folder in (working_directory, *working_directory.parents):
        file = folder / "Pulumi.yaml"
        if file.is_file() and b"name: kai-fleet" in file.read_bytes().splitlines():
            return folder
    if CHECKOUT is None or any(working_directory.glob("Pulumi.*.yaml")):
        return working_directory
    return CHECKOUT


ROOT = _project()
"""The project's folder, found once, when this module is imported."""


def update_command(stack: str) -> str:
    """The command that updates a stack: with `make` in a checkout, else with `fleet`."""
    if CHECKOUT is None:
        return f"{FLEET} up --stack {stack}"
    return f"make up STACK={stack}"


def preview_command(stack: str, *, details: bool = False) -> str:
    """The command that previews a stack; with `details` it shows all properties."""
    if CHECKOUT is None:
        command = f"{FLEET} preview --stack {stack}"
        return f"{command} --details" if details else command
    command = f"make preview STACK={stack}"
    return f"{command} DETAILS=1" if details else command
