"""examples/yaml on the sandbox: a program in YAML declares a team by the component host."""

import json
from pathlib import Path

import pytest
import yaml
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST
from tests.engine.product import api
from tests.engine.sandbox_commands import run

pytestmark = [pytest.mark.engine, pytest.mark.yaml, pytest.mark.timeout(300)]


@pytest.fixture
def pulumi(sandbox, tmp_path):
    """Run the CLI on a copy of the example, with a stack of its own."""
    text = (ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text()
    (tmp_path / "Pulumi.yaml").write_text(text.replace("../../.venv", str(ROOT / ".venv")))
    host = toolbox.ensure([YAML_HOST], print)[YAML_HOST]
    path = f"{Path(host.path).parent}:{sandbox.env()['PATH']}"

    def pulumi(*arguments: str) -> str:
        command = ("pulumi", *arguments, "--non-interactive")
        return run(sandbox, *command, cwd=tmp_path, PATH=path)

    pulumi("stack", "init", "yaml")
    yield pulumi
    pulumi("destroy", "--yes", "--skip-preview")
    pulumi("stack", "rm", "--yes")


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
