"""`fleet my …` as a team runs it: in a folder that is no checkout, with its kubeconfig alone."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from kai_fleet_cli.stack_file.reading import ROOT

FLEET = ROOT / ".venv" / "bin" / "fleet"


def run(kubeconfig: Path, *words: str) -> str:
    """What a command prints at 80 columns."""
    ran = subprocess.run(
        [str(FLEET), "my", *words],
        cwd=kubeconfig.parent,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            "COLUMNS": "80",
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def asked(kubeconfig: Path, *words: str) -> Any:
    """What a command says to machines."""
    return json.loads(run(kubeconfig, *words, "--json"))
