"""examples/python, examples/yaml and examples/typescript on the sandbox: a team by components."""

import json
import runpy
import shutil
from pathlib import Path

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml
from pulumi import automation

from kai_fleet import HostGuards, TeamNamespace
from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST
from tests.engine.bare_engine import Engine
from tests.engine.product import api, queues
from tests.engine.sandbox_commands import run

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]
INLINE = Path(__file__).with_name("inline_program.cjs")
SETTINGS = {"context": "kai-fleet-sandbox", "node": "127.0.0.1"}


@pytest.fixture(autouse=True)
def new(place, sandbox):
    """Each program on a host of its own: what the one before it made is gone."""
    place.empty()


def quotas(kubeconfig):
    """The GPUs that each queue of a cluster is guaranteed."""
    assert yaml.safe_load(kubeconfig)["users"]
    found = queues(api(kubeconfig))
    return {name: item["spec"]["resources"]["gpu"]["quota"] for name, item in found.items()}


def test_in_python_two_teams_come_one_switches_and_both_go(engine, sandbox, tmp_path, monkeypatch):
    text = (ROOT / "examples" / "python" / "__main__.py").read_text()

    def program(research):
        """The example with this KAI for its team research."""
        file = tmp_path / "__main__.py"

        def declare():
            file.write_text(text.replace("v0.7.11", research))
            runpy.run_path(str(file), run_name="__main__")

        return declare

    for key, value in sandbox.env().items():  # for the program, which runs in this process
        monkeypatch.setenv(key, value)
    for key, value in SETTINGS.items():
        engine.stack.set_config(key, automation.ConfigValue(value))
    engine.up(program("v0.7.11"))
    outputs = engine.stack.outputs()
    assert set(quotas(outputs["research-kubeconfig"].value)) == {"default", "train"}
    assert outputs["research-kubeconfig"].secret
    assert engine.field(".metadata.name", "namespace", "team-ml") == "team-ml"

    engine.up(program("v0.9.3"))
    state = json.loads(engine.state())["deployment"]["resources"]
    versions = {
        item["urn"].rpartition("::")[2]: item["outputs"]["version"]
        for item in state
        if item["type"] == "kubernetes:helm.sh/v3:Release"
    }
    assert versions["research-kai-release"].removeprefix("v") == "0.9.3"

    engine.destroy()
    assert engine.field(".metadata.name", "namespace", "team-research") == ""


def host_guards(**args):
    """A program with the guards of the host, and a team's namespace below them."""

    def declare():
        on_host = pulumi.ResourceOptions(
            provider=kubernetes.Provider("host", context="kai-fleet-sandbox")
        )
        guards = HostGuards("guards", args, on_host)
        TeamNamespace("second", {"guards": guards.ready}, on_host)

    return declare


def test_the_guards_of_another_program_are_neither_taken_over_nor_deleted(
    engine, sandbox, tmp_path, monkeypatch
):
    for key, value in sandbox.env().items():  # for the programs, which run in this process
        monkeypatch.setenv(key, value)
    policies = ("validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name")

    def first():
        provider = kubernetes.Provider("host", context="kai-fleet-sandbox")
        HostGuards("guards", {}, pulumi.ResourceOptions(provider=provider))

    engine.up(first)
    before = engine.kubectl("get", *policies)
    second = Engine(sandbox, tmp_path)
    for look in (second.preview, second.up):
        with pytest.raises(automation.CommandError):
            look(host_guards())
        said = second.printed
        assert "HostGuards guards: ValidatingAdmissionPolicy kai-fleet-" in said
        assert "write use_existing: true" in " ".join(said.split())
        assert "Traceback" not in said
    second.up(host_guards(use_existing=True))
    assert engine.preview(first).keys() == {"same"}
    with pytest.raises(automation.CommandError):  # of the live team of the second program
        engine.preview(host_guards(use_existing=False))
    assert "TeamNamespace second: Namespace team-second is in the cluster" in engine.printed
    second.destroy()
    assert engine.kubectl("get", *policies) == before
    with pytest.raises(automation.CommandError):  # nobody has them: nothing to lean on
        engine.destroy()
        second.preview(host_guards(use_existing=True))
    assert "is not in the cluster, and nothing here declares it" in second.printed


@pytest.mark.yaml
def test_in_yaml_a_program_makes_a_team(sandbox, tmp_path):
    text = (ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text()
    (tmp_path / "Pulumi.yaml").write_text(text.replace("../../.venv", str(ROOT / ".venv")))
    host = toolbox.ensure([YAML_HOST], print)[YAML_HOST]
    path = f"{Path(host.path).parent}:{sandbox.env()['PATH']}"

    def pulumi(*arguments):
        command = ("pulumi", *arguments, "--non-interactive")
        return run(sandbox, *command, cwd=tmp_path, PATH=path)

    pulumi("stack", "init", "yaml")
    for key, value in SETTINGS.items():
        pulumi("config", "set", key, value)
    pulumi("up", "--yes", "--skip-preview")
    assert json.loads(pulumi("stack", "output", "--json"))["kubeconfig"] == "[secret]"
    outputs = json.loads(pulumi("stack", "output", "--json", "--show-secrets"))
    assert quotas(outputs["kubeconfig"]) == {"default": 8, "train": 6, "serve": 2}
    assert "unchanged" in pulumi("preview")


def test_in_typescript_a_program_makes_a_team(sandbox, tmp_path):
    """The compiled example, run inline: no registry has Node's language host."""
    project = shutil.copytree(ROOT / "examples" / "typescript", tmp_path / "typescript")
    declared = project / "Pulumi.yaml"
    declared.write_text(declared.read_text().replace("../../.venv", str(ROOT / ".venv")))
    run(sandbox, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=project)
    run(sandbox, "node_modules/.bin/tsc", "-p", ".", cwd=project)

    def operation(name, *settings):
        command = ("node", str(INLINE), str(project), "typescript", name, *settings)
        return json.loads(run(sandbox, *command, cwd=project))

    settings = (f"{key}={value}" for key, value in SETTINGS.items())
    kubeconfig = operation("up", *settings)["outputs"]["kubeconfig"]
    assert kubeconfig["secret"]
    assert quotas(kubeconfig["value"]) == {"default": 8, "train": 6, "serve": 2}
