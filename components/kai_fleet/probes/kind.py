"""`fleet-probe kind create` and `delete`: a kind cluster's scripts, wherever kai-fleet is."""

from __future__ import annotations

import os
import sys
from importlib import resources
from typing import NoReturn


def main() -> NoReturn:
    """Become the script that the argument names; it finds this Python by a variable."""
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if verb not in ("create", "delete"):
        raise SystemExit("fleet-probe kind: write create or delete")
    script = resources.files("kai_fleet.cluster.kind") / f"{verb}.sh"
    # By bash: a file of a wheel is not executable.
    os.execvpe("bash", ["bash", str(script)], {"KIND_PYTHON": sys.executable, **os.environ})
