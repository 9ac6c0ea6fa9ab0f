"""What an update asks the CLI for when it has ended, and what it leaves of its environment."""

import os
from types import SimpleNamespace

import pytest
from pulumi import automation

from kai_fleet.marks import SECRET_MARK, SIGNATURE
from kai_fleet.names import STACK
from kai_fleet.one_run import REMOVE_VARIABLE
from kai_fleet_cli.engine import runs, workspace
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.recovery import state

SECRET = {SIGNATURE: SECRET_MARK, "ciphertext": "[secret]"}
OUTPUTS = {"teams": {"ml": {"gpus": 8}}, "kubeconfigs": {"ml": SECRET}, "platform": SECRET}


def ended(kind, outputs):
    state = {"type": kind, "urn": f"urn:pulumi:lab::kai-fleet::{kind}::x", "outputs": outputs}
    step = {"op": "same", "urn": state["urn"], "type": kind, "provider": "", "new": state}
    return {"sequence": 1, "timestamp": 0, "resOutputsEvent": {"metadata": step}}


@pytest.fixture
def update(tmp_path, monkeypatch):
    """An update of stack lab, whose engine is a function."""
    monkeypatch.setattr(state, "exported", lambda *_: state.State())

    def run(engine, variables=(), **more):
        work = SimpleNamespace(env_vars=dict(variables), work_dir=str(tmp_path))
        return runs.up(SimpleNamespace(name="lab", workspace=work, up=engine), **more)

    return run


def test_outputs_come_with_the_stacks_own_end_and_secret_ones_stay_away(update):
    def engine(*, on_event, **_):
        for event in (ended("kubernetes:core/v1:Pod", {"x": 1}), ended(STACK, OUTPUTS)):
            on_event(automation.EngineEvent.from_json(event))

    report = update(engine)
    assert not report.began
    assert report.outputs == {"teams": OUTPUTS["teams"]}


def test_a_stacks_variables_are_in_this_process_only_while_its_program_runs(update, monkeypatch):
    def engine(**_):
        assert os.environ["KUBECONFIG"] == "the-stacks"
        assert os.environ["KAI_FLEET_CHARTS"] == "charts"
        raise automation.errors.CommandError(automation.CommandResult("", "error: no", 255))

    monkeypatch.setenv("KUBECONFIG", "ones-own")
    monkeypatch.delenv("KAI_FLEET_CHARTS", raising=False)
    before = dict(os.environ)
    with pytest.raises(EngineError):
        update(engine, {"KUBECONFIG": "the-stacks", "KAI_FLEET_CHARTS": "charts"})
    assert dict(os.environ) == before


NO_CLI = {
    "missing": ("", "No such file or directory: 'pulumi'"),
    "too old": ("#!/bin/sh\necho v1.0.0\n", "your current CLI version is 1.0.0"),
    "no version": ("#!/bin/sh\necho hello\n", "Could not parse the Pulumi CLI version"),
    "ends at once": ("#!/bin/sh\nexit 3\n", "returned non-zero exit status 3"),
    "of another machine": ("\x7fELF", "Exec format error: 'pulumi'"),
}


@pytest.mark.parametrize("case", NO_CLI)
def test_a_cli_that_cannot_be_used_is_one_sentence_and_began_nothing(tmp_path, monkeypatch, case):
    script, says = NO_CLI[case]
    if script:
        (tmp_path / "pulumi").write_text(script)
        (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setattr(workspace.plugin, "serve_here", dict)
    with pytest.raises(EngineError) as why:
        workspace.open_stack("lab", {"PATH": str(tmp_path)}, tmp_path)
    assert says in str(why.value)
    assert str(why.value).endswith("install another: https://www.pulumi.com/docs/install/")
    assert not why.value.began


def test_what_may_be_lost_is_asked_for_before_anything_begins(update, monkeypatch):
    done = []
    monkeypatch.setattr(runs, "refresh_state", lambda *_: done.append("refresh"))

    def agree(known):
        done.append(known)
        return ["ml"]

    update(lambda **_: done.append(os.environ[REMOVE_VARIABLE]), refresh=True, agree=agree)
    assert done == [state.State(), "refresh", "ml"]


def test_a_team_that_may_go_is_named_to_the_program(update):
    seen = []

    def engine(**_):
        seen.append(os.environ[REMOVE_VARIABLE])

    update(engine, removed=["ml", "nlp"])
    assert seen == ["ml,nlp"]
    assert REMOVE_VARIABLE not in os.environ
