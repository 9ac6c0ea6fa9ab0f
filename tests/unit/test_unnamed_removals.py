"""A deployed team that the file does not declare any more goes only when it is named."""

import json
import signal
from contextvars import ContextVar
from types import SimpleNamespace

import pulumi
import pytest
from pulumi.runtime import config
from typer.testing import CliRunner

from kai_fleet.deployed import Deployed
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.commands import updates
from kai_fleet_cli.engine import runs, summary
from kai_fleet_cli.engine.environment import Environment
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume, state
from kai_fleet_cli.recovery.resume import Interrupted
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import validation
from kai_fleet_policies.validation import REMOVE_VARIABLE

CLUSTER = {"name": "prod", "context": "prod"}
TEAM = {"scheduler": {"mode": "default"}, "gpus": 1, "nodePool": {"pool": "a"}}
URN = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team::{}"
BELOW = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team$kubernetes:core/v1:Namespace::other"


def deployed(*teams):
    return Deployed(urns=frozenset([*map(URN.format, teams), BELOW]))


def settings(monkeypatch, past, **raw):
    """What the program does first, with this configuration."""
    raw = {"cluster": CLUSTER, "teams": {"ml": TEAM}, **raw}
    handed = {f"kai-fleet:{key}": json.dumps(value) for key, value in raw.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(handed))
    monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=None))
    return validation.checked_settings(past, lambda _: None)


@pytest.mark.parametrize("teams", [{"ml": TEAM}, {}], ids=["one cut", "all cut"])
def test_the_program_refuses_to_remove_a_team_that_nobody_named(monkeypatch, teams):
    with pytest.raises(pulumi.RunError) as refusal:
        settings(monkeypatch, deployed("ml", "research"), teams=teams)
    said = str(refusal.value)
    assert "kai-fleet:teams.research: team research" in said
    assert "its volumes would go" in said
    assert "kai-fleet:removed: [research]" in said
    assert "--remove-team research" in said and f"{REMOVE_VARIABLE}=research" in said
    assert ("team ml" in said) == (not teams)
    assert "other" not in said


GRANTED = "urn:pulumi:prod::kai-fleet::kai-fleet:index:TeamNamespace::vision"


def test_a_grant_goes_with_its_namespace_only_where_it_is_named(monkeypatch):
    """In it is the vCluster that the team's own stack made."""
    past = Deployed(urns=frozenset([GRANTED]))
    grant = {"nodePool": {"pool": "vision"}, "gpus": 1}
    assert settings(monkeypatch, past, teamStacks={"vision": grant})
    assert settings(monkeypatch, past, removed=["vision"])
    for teams in ({"ml": TEAM}, {"vision": {**TEAM, "nodePool": {"pool": "vision"}}}):
        with pytest.raises(pulumi.RunError, match="team vision: is deployed and not in the file"):
            settings(monkeypatch, past, teams=teams)


def test_a_named_team_may_go(monkeypatch):
    past = deployed("ml", "research", "dev")
    assert settings(monkeypatch, past, removed=["research", "dev", "long-gone"])
    monkeypatch.setenv(REMOVE_VARIABLE, "research,dev")
    assert settings(monkeypatch, past)


def test_a_first_run_and_an_offline_plan_know_of_no_team(monkeypatch):
    assert settings(monkeypatch, Deployed())


def test_a_team_cannot_be_kept_and_removed():
    raw = {"cluster": CLUSTER, "teams": {"ml": TEAM}, "removed": ["ml"]}
    (problem,) = validation.validate(raw).refused
    assert problem.path == "kai-fleet:removed" and "names ml" in problem.message


@pytest.fixture
def prod(tmp_path, monkeypatch):
    """A stack in which `research` is deployed and not in the file; what its updates were told."""
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "config:\n  kai-fleet:cluster: {name: prod, context: prod}\n"
        "  kai-fleet:teams: {ml: {scheduler: {mode: default}, gpus: 1}}\n"
    )
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    named = []

    def up(stack, *, refresh, removed):
        named.append(list(removed))
        if removed != ["research"]:
            raise runs.EngineError("the program refused")
        return runs.Report()

    monkeypatch.delenv(REMOVE_VARIABLE, raising=False)
    monkeypatch.setattr(updates, "for_stack", lambda *_, **__: Environment())
    monkeypatch.setattr(runs, "stack", lambda name, _: SimpleNamespace(name=name))
    monkeypatch.setattr(runs, "up", up)
    deployed = [{"urn": URN.format(team)} for team in ("research", "ml")]
    monkeypatch.setattr(state, "exported", lambda _: state.ExportedState({"resources": deployed}))
    monkeypatch.setattr(summary, "show", lambda *_: None)
    return named


def run(*arguments):
    return CliRunner().invoke(app, ["up", "--stack", "prod", *arguments])


def test_elsewhere_than_at_a_terminal_the_refusal_stands(prod):
    assert str(run().exception) == "the program refused"
    assert prod == [[]]


def test_the_flag_names_it(prod):
    assert run("--remove-team", "research").exit_code == 0
    assert prod == [["research"]]


def test_at_a_terminal_its_name_is_asked_for(prod, at_a_terminal):
    at_a_terminal("research")
    ran = run()
    assert ran.exit_code == 0, ran.exception
    assert prod == [["research"]]


@pytest.mark.parametrize("answer", ["no", "yes", "y", "ml", ""])
def test_any_other_answer_changes_nothing(prod, at_a_terminal, answer):
    at_a_terminal(answer)
    ran = run()
    assert isinstance(ran.exception, UserError) and not isinstance(ran.exception, runs.EngineError)
    assert prod == []


def printed(text):
    """The `fleet` command of a message, as a shell would get it."""
    return text.partition(".venv/bin/fleet ")[2].partition(". ")[0].split()


def test_after_a_run_that_was_cut_off_the_repair_needs_the_team_named(prod, monkeypatch):
    """Nobody has agreed yet that it goes: it is not put into the command unasked."""

    def up(stack, *, refresh, removed):
        if not refresh:
            again = resume.up("prod", removed)
            raise runs.EngineError(f"it was cut off. Repair it with: {again}")
        prod.append(list(removed))
        return runs.Report()

    monkeypatch.setattr(runs, "up", up)
    said = str(run().exception)
    assert "Deployed and not in Pulumi.prod.yaml: research." in said
    assert said.endswith("for what is to go add: --remove-team research")
    named = printed(str(run("--remove-team", "research").exception))
    assert named == ["up", "--refresh", "--stack", "prod", "--remove-team", "research"]
    assert CliRunner().invoke(app, named).exit_code == 0
    assert prod == [["research"]]


def test_an_interrupted_update_names_the_teams_that_may_go(prod, monkeypatch):
    def interrupted(*_, **__):
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(runs, "up", interrupted)
    ran = run("--remove-team", "research")
    assert ran.exit_code == 143
    command = printed(ran.stderr)
    assert command == ["up", "--refresh", "--stack", "prod", "--remove-team", "research"]
