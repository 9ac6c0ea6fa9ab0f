"""What an update asks the CLI for when it has ended, and what it leaves of its environment."""

import os
from types import SimpleNamespace

import pytest
from pulumi import automation

from kai_fleet.deployed import STACK
from kai_fleet.provider.values import SECRET_MARK, SIGNATURE
from kai_fleet_cli.engine import runs
from kai_fleet_cli.recovery import state
from kai_fleet_policies.validation import REMOVE_VARIABLE

SECRET = {SIGNATURE: SECRET_MARK, "ciphertext": "[secret]"}
OUTPUTS = {"teams": {"ml": {"gpus": 8}}, "kubeconfigs": {"ml": SECRET}, "platform": SECRET}


def ended(kind, outputs):
    state = {"type": kind, "urn": f"urn:pulumi:lab::kai-fleet::{kind}::x", "outputs": outputs}
    step = {"op": "same", "urn": state["urn"], "type": kind, "provider": "", "new": state}
    return {"sequence": 1, "timestamp": 0, "resOutputsEvent": {"metadata": step}}


def test_outputs_come_with_the_stacks_own_end_and_secret_ones_stay_away(tmp_path, monkeypatch):
    def up(*, on_event, **_):
        for event in (ended("kubernetes:core/v1:Pod", {"x": 1}), ended(STACK, OUTPUTS)):
            on_event(automation.EngineEvent.from_json(event))
        return SimpleNamespace(summary=SimpleNamespace(resource_changes={"same": 2}))

    monkeypatch.setattr(state, "exported", lambda _: state.ExportedState({}))
    workspace = SimpleNamespace(env_vars={}, work_dir=str(tmp_path))
    outcome = runs.up(SimpleNamespace(name="lab", workspace=workspace, up=up))
    assert outcome.unchanged
    assert outcome.outputs == {"teams": OUTPUTS["teams"]}


def test_a_stacks_variables_are_in_this_process_only_while_its_program_runs(tmp_path, monkeypatch):
    def up(**_):
        assert os.environ["KUBECONFIG"] == "the-stacks"
        assert os.environ["KAI_FLEET_CHARTS"] == "charts"
        raise automation.errors.CommandError(automation.CommandResult("", "error: no", 255))

    monkeypatch.setenv("KUBECONFIG", "ones-own")
    monkeypatch.delenv("KAI_FLEET_CHARTS", raising=False)
    monkeypatch.setattr(state, "exported", lambda _: state.ExportedState({}))
    variables = {"KUBECONFIG": "the-stacks", "KAI_FLEET_CHARTS": "charts"}
    workspace = SimpleNamespace(env_vars=variables, work_dir=str(tmp_path))
    before = dict(os.environ)
    with pytest.raises(runs.EngineError):
        runs.up(SimpleNamespace(name="lab", workspace=workspace, up=up))
    assert dict(os.environ) == before


def test_a_team_that_may_go_is_named_to_the_program(tmp_path, monkeypatch):
    seen = []

    def up(**_):
        seen.append(os.environ[REMOVE_VARIABLE])
        return SimpleNamespace(summary=SimpleNamespace(resource_changes={}))

    monkeypatch.setattr(state, "exported", lambda _: state.ExportedState({}))
    workspace = SimpleNamespace(env_vars={}, work_dir=str(tmp_path))
    runs.up(SimpleNamespace(name="lab", workspace=workspace, up=up), removed=["ml", "nlp"])
    assert seen == ["ml,nlp"]
    assert REMOVE_VARIABLE not in os.environ
