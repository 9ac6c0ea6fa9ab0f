"""The plugin's environment: what uv.lock pins, and the repository beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kai_fleet.project import ROOT

_HEAD = "# What uv.lock pins, and this repository itself; written by `make reference`."


def requirements() -> str:
    """The text of `components/requirements.txt`. `pip` reads it in that folder."""
    uv = Path(sys.executable).with_name("uv")
    export = ["export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--no-annotate"]
    pinned = subprocess.run(
        [uv, *export, "--no-header"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return f"{_HEAD}\n{pinned}..\n"


if __name__ == "__main__":
    print(requirements(), end="")
