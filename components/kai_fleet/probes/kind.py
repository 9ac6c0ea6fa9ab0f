"""`fleet-probe kind create` and `delete`: a kind cluster's scripts, wherever kai-fleet is."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from kai_fleet.cluster.kind import SCRIPTS


def main() -> NoReturn:
    """Become the script that the argument names; it finds this Python by a variable."""
    verb = sys.argv[1] if len(sys.argv) > 1 else ""

    if verb not in ("create", "delete"):
        raise SystemExit("fleet-probe kind: write create or delete")
    # By bash: a file of a wheel is not executable.
    os.execvpe(
        "bash", ["bash", str(SCRIPTS / f"{verb}.sh")], {"KIND_PYTHON": sys.executable, **os.environ}
    )
