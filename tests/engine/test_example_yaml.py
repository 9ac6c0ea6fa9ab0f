"""examples/yaml on the sandbox: a program in YAML declares a team by the component host."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST
from tests.engine.product import api

pytestmark = [pytest.mark.engine, pytest.mark.yaml, pytest.mark.timeout(300)]


@pytest.fixture
def pulumi(sandbox, tmp_path):
    """Run the CLI on a copy of the example, with a stack of its own."""
    text = (ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text()
    (tmp_path / "Pulumi.yaml").write_text(text.replace("../../.venv", str(ROOT / ".venv")))
    host = toolbox.ensure([YAML_HOST], print)[YAML_HOST]
    environment = {**os.environ, **sandbox.env()}
    environment["PATH"] = f"{Path(host.path).parent}:{environment['PATH']}"

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    run("stack", "init", "yaml")
    yield run
    run("destroy", "--yes", "--skip-preview")
    run("stack", "rm", "--yes")


def queues_of(kubeconfig):
    """The GPUs that each queue of a cluster is guaranteed."""
    inside = client.CustomObjectsApi(api(kubeconfig))
    queues = inside.list_cluster_custom_object("scheduling.run.ai", "v2", "queues")["items"]
    return {
        queue["metadata"]["name"]: queue["spec"]["resources"]["gpu"]["quota"] for queue in queues
    }


def test_a_program_in_yaml_makes_a_team(pulumi):
    pulumi("config", "set", "context", "kai-fleet-sandbox")
    pulumi("config", "set", "node", "127.0.0.1")
    pulumi("preview")
    pulumi("up", "--yes", "--skip-preview")
    masked = json.loads(pulumi("stack", "output", "--json"))
    assert masked["kubeconfig"] == "[secret]"
    kubeconfig = json.loads(pulumi("stack", "output", "--json", "--show-secrets"))["kubeconfig"]
    assert yaml.safe_load(kubeconfig)["users"]
    assert queues_of(kubeconfig) == {"default": 8, "train": 6, "serve": 2}
    assert "unchanged" in pulumi("preview")
