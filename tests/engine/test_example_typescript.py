"""examples/typescript on the sandbox: a program in TypeScript declares a team by the plugin."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.sandbox_commands import run
from tests.engine.test_example_yaml import queues_of

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]
INLINE = Path(__file__).with_name("inline_program.cjs")


@pytest.fixture
def program(sandbox, tmp_path):
    """Run the compiled example, with a stack of its own: no registry has Node's language host."""
    project = shutil.copytree(ROOT / "examples" / "typescript", tmp_path / "typescript")
    declared = project / "Pulumi.yaml"
    declared.write_text(declared.read_text().replace("../../.venv", str(ROOT / ".venv")))
    run(sandbox, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=project)
    run(sandbox, "node_modules/.bin/tsc", "-p", ".", cwd=project)

    def operation(name: str, *settings: str):
        command = ("node", str(INLINE), str(project), "typescript", name, *settings)
        return json.loads(run(sandbox, *command, cwd=project))

    yield operation
    operation("destroy")


def test_a_program_in_typescript_makes_a_team(program):
    program("preview", "context=kai-fleet-sandbox", "node=127.0.0.1")
    kubeconfig = program("up")["outputs"]["kubeconfig"]
    assert kubeconfig["secret"]
    assert yaml.safe_load(kubeconfig["value"])["users"]
    assert queues_of(kubeconfig["value"]) == {"default": 8, "train": 6, "serve": 2}
