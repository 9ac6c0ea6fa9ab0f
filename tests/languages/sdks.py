"""SDKs of the package's schema, and programs that use them, in folders outside of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from kai_fleet.cli.stack_file.reading import ROOT

HERE = Path(__file__).parent
SCHEMA = ROOT / "kai_fleet" / "package" / "schema.json"


def run(
    command: list[str | Path], where: Path, env: dict[str, str] | None = None, timeout: float = 400
) -> str:
    """What a command prints; its errors where it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def generator(folder: Path) -> Path:
    """Pulumi's own generators, built from the module that the sandbox's CLI is built from."""
    source = folder / "codegen"
    shutil.copytree(HERE / "codegen", source)
    flags = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=mod -trimpath -buildvcs=false"}
    run(["go", "build", "-o", "codegen", "."], source, flags)
    return source / "codegen"


def typescript(example: Path, folder: Path) -> Path:
    """An example in TypeScript with its SDK, compiled; as `pulumi package add` leaves it."""
    project = Path(shutil.copytree(example, folder / example.parent.name / example.name))
    sdk = project / "sdks" / "kai-fleet"
    run([generator(folder), SCHEMA, "nodejs", sdk], project)
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], project)
    (project / "node_modules" / "kai-fleet").symlink_to(sdk)
    compiler = project / "node_modules" / ".bin" / "tsc"
    run([compiler], sdk)
    shutil.copy(sdk / "package.json", sdk / "bin")  # as the SDK's own script after its installation
    run([compiler, "-p", "."], project)
    shutil.copy(HERE / "inline.js", project / "bin" / "inline.cjs")
    return project


class Inline:
    """A compiled program of a stack, run by the Automation API of its language."""

    def __init__(self, project: Path, stack: str, env: dict[str, str]) -> None:
        self.project, self.stack, self.env = project, stack, env
        self.settings: dict[str, str] = {}

    def __call__(self, operation: str, **settings: str) -> Any:
        self.settings |= settings  # such a stack keeps none between two runs
        given = [f"{key}={value}" for key, value in self.settings.items()]
        command = ["node", "bin/inline.cjs", self.stack, operation, *given]
        return json.loads(run(command, self.project, self.env))
