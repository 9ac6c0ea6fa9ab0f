"""`kubectl fleet` as a team runs it: in a folder that is no checkout, with its kubeconfig alone."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.lifecycle import Sandbox

PLUGIN = ROOT / ".venv" / "bin" / "kubectl-fleet"


def run(sandbox: Sandbox, kubeconfig: Path, *words: str) -> str:
    """What a command of kubectl prints at 80 columns. kubectl finds its plugin on the PATH."""
    ran = subprocess.run(
        ["kubectl", *words],
        cwd=kubeconfig.parent,
        env={
            "PATH": os.pathsep.join([str(PLUGIN.parent), sandbox.env()["PATH"]]),
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            "COLUMNS": "80",
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), f"exit code {ran.returncode}: {ran.stderr}"
    return ran.stdout


def asked(sandbox: Sandbox, kubeconfig: Path, *words: str) -> Any:
    """What a command says to machines."""
    return json.loads(run(sandbox, kubeconfig, "fleet", *words, "--json"))
