"""`fleet-probe kind create` and `delete`: a kind cluster's scripts, wherever kai-fleet is."""

import os
import sys
from importlib import resources
from typing import NoReturn


def create() -> NoReturn:
    """Make the cluster that the environment describes."""
    _become("create.sh")


def delete() -> NoReturn:
    """Delete that cluster."""
    _become("delete.sh")


def _become(script: str) -> NoReturn:
    """Run the script in place of this process; it finds this Python by a variable."""
    file = resources.files("kai_fleet.cluster.kind") / script
    # By bash: a file of a wheel is not executable.
    os.execvpe("bash", ["bash", str(file)], {"KIND_PYTHON": sys.executable, **os.environ})
