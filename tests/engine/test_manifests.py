"""A team's files run no program and read no file where the update runs."""

import json

import pytest
import yaml

from kai_fleet.marks import SIGNATURE
from kai_fleet_cli.engine.operation import POLICY_PACK
from tests.engine.sandbox_commands import pulumi, typed

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

ASSET = "c44067f5952c0a294b673a41bacd8c17"
TEAM_FILE = "workloads/ml.yaml"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
COMMANDS = {
    "plan": ".venv/bin/fleet plan --stack sandbox",
    "fleet up": ".venv/bin/fleet up --stack sandbox",
}


@pytest.fixture
def traps(tmp_path):
    """A program that leaves a trace of its run, a chart, and a file of the operator's own."""
    program, chart = tmp_path / "program", tmp_path / "chart"
    program.write_text(f"#!/bin/sh\nenv > {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    (chart / "templates" / "a.yaml").write_text(yaml.safe_dump(MAP))
    (tmp_path / "secret").write_text("0perators-0wn")
    return tmp_path


def manifests(traps):
    release = {"apiVersion": "helm.sh/v3", "kind": "Release", "metadata": {"name": "r"}}
    asset = {SIGNATURE: ASSET, "path": f"{traps}/secret"}
    return {
        "a program": {**release, "chart": f"{traps}/chart", "postrender": f"{traps}/program"},
        "a file of values": {
            **release,
            "chart": f"{traps}/chart",
            "valueYamlFiles": [{SIGNATURE: ASSET, "path": f"{traps}/secret"}],
        },
        "a file": {**MAP, "data": {"a": asset}},
        "a name": {**MAP, "metadata": {"name": "a::pulumi:pulumi:Stack::b"}},
    }


@pytest.fixture
def planted(one_team, traps):
    """What names such a file for the team; the stack is put back."""
    before, file = one_team.product.file.read_text(), one_team.folder / TEAM_FILE
    file.parent.mkdir(exist_ok=True)

    def plant(manifest):
        file.write_text(yaml.safe_dump(manifests(traps)[manifest]))
        config = yaml.safe_load(before)
        config["config"]["kai-fleet:workloads"] = {"ml": [TEAM_FILE]}
        one_team.product.file.write_text(yaml.safe_dump(config))

    yield plant
    one_team.product.file.write_text(before)
    file.unlink()


@pytest.mark.parametrize("manifest", ["a program", "a file of values", "a file", "a name"])
def test_no_command_runs_or_reads_what_a_manifest_names(one_team, traps, planted, manifest):
    planted(manifest)
    folder, stack = one_team.folder, ("--stack", "sandbox")
    ran = [typed(folder, command, **one_team.sandbox.env()) for command in COMMANDS.values()]
    for arguments in (("preview",), ("preview", "--policy-pack", POLICY_PACK), ("up", "--yes")):
        ran.append(pulumi(one_team.sandbox, folder, *arguments, *stack))
    for done in ran:
        assert done.returncode != 0
        assert f"kai-fleet:workloads.ml.{TEAM_FILE}" in done.stdout + done.stderr
    assert not (traps / "ran").exists()
    kept = json.dumps(one_team.product.stack.export_stack().deployment)
    assert "0perators-0wn" not in kept and "helm.sh/v3:Release::ml/r" not in kept
