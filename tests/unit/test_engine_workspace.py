"""What an update asks the CLI for when it has ended, and what it leaves of its environment."""

import json
import os
from types import SimpleNamespace

import pytest
from pulumi import automation

from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.runs import Workspace
from kai_fleet_cli.recovery import reconcile

MASKED = {"teams": {"ml": {"gpus": 8}}, "kubeconfigs": "[secret]"}


def test_outputs_are_asked_for_once_and_secrets_stay_masked(tmp_path):
    asked = []

    def run(command, folder, variables):
        asked.append(command)
        return SimpleNamespace(stdout=json.dumps(MASKED))

    pulumi = SimpleNamespace(run=run)
    found = Workspace(work_dir=str(tmp_path), pulumi_command=pulumi).stack_outputs("lab")
    assert asked == [["stack", "output", "--json", "--stack", "lab"]]
    assert {name: it.secret for name, it in found.items()} == {"teams": False, "kubeconfigs": True}
    assert found["teams"].value == MASKED["teams"]


def test_a_stacks_variables_are_in_this_process_only_while_its_program_runs(tmp_path, monkeypatch):
    def up(**_):
        assert os.environ["KUBECONFIG"] == "the-stacks"
        assert os.environ["KAI_FLEET_CHARTS"] == "charts"
        raise automation.errors.CommandError(automation.CommandResult("", "error: no", 255))

    monkeypatch.setenv("KUBECONFIG", "ones-own")
    monkeypatch.delenv("KAI_FLEET_CHARTS", raising=False)
    monkeypatch.setattr(reconcile, "before", lambda *_, **__: None)
    variables = {"KUBECONFIG": "the-stacks", "KAI_FLEET_CHARTS": "charts"}
    workspace = SimpleNamespace(env_vars=variables, work_dir=str(tmp_path))
    before = dict(os.environ)
    with pytest.raises(runs.EngineError):
        runs.up(SimpleNamespace(name="lab", workspace=workspace, up=up), print)
    assert dict(os.environ) == before
