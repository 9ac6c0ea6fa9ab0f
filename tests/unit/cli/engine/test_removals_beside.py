"""An update that keeps what is no longer declared until it leaves out the teams that failed."""

import os
from types import SimpleNamespace

import pytest
from pulumi import automation

from kai_fleet.names import STACK
from kai_fleet.one_run import FAILED_VARIABLE, REMOVALS_WAIT
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.recovery.state import State

TOP = "urn:pulumi:prod::kai-fleet::"
TEAMS = {name: f"{TOP}kai-fleet:index:Team::{name}" for name in ("ml", "nlp", "dev")}
PARTS = {name: f"{TOP}kai-fleet:index:Team$x:y:Z::{name}-part" for name in TEAMS}
ROOT = f"{TOP}{STACK}::kai-fleet-prod"


def event(kind, content):
    return automation.EngineEvent.from_json({"sequence": 1, "timestamp": 0, kind: content})


class Engine:
    """A stack in whose runs parts of teams fail; `failing` has the teams of each run."""

    name = "prod"

    def __init__(self, folder, *failing, removals=True):
        self.workspace = SimpleNamespace(env_vars={}, work_dir=str(folder))
        self.failing = list(failing)
        self.removals = removals
        self.runs = []

    def up(self, *, on_event, exclude, **_):
        self.runs.append((os.environ.get(FAILED_VARIABLE), set(exclude or ())))
        failed = self.failing.pop(0)
        for team in failed:
            self._fail(on_event, PARTS[team], TEAMS[team])
        if failed and self.removals:
            self._say(on_event, "", REMOVALS_WAIT)
        if failed:
            raise automation.errors.CommandError(automation.CommandResult("", "error: failed", 255))

    def _fail(self, on_event, urn, parent):
        step = {"op": "update", "urn": urn, "type": "x:y:Z", "provider": ""}
        step["new"] = {"urn": urn, "type": "x:y:Z", "parent": parent, "inputs": {}}
        for kind in ("resourcePreEvent", "resOpFailedEvent"):
            on_event(event(kind, {"metadata": step, "status": 1, "steps": 1}))
        self._say(on_event, urn, "the test refuses it")

    def _say(self, on_event, urn, message):
        content = {"urn": urn, "message": message, "severity": "error", "color": "raw"}
        on_event(event("diagnosticEvent", content))


@pytest.fixture(autouse=True)
def known(monkeypatch):
    resources = {ROOT: {"urn": ROOT, "type": STACK}}
    for team, part in PARTS.items():
        resources[TEAMS[team]] = {"urn": TEAMS[team], "type": "t", "parent": ROOT}
        resources[part] = {"urn": part, "type": "x:y:Z", "parent": TEAMS[team]}
    monkeypatch.setattr(state, "exported", lambda *_: State(resources=resources))


def failure(engine):
    with pytest.raises(EngineError) as why:
        runs.up(engine)
    return why.value


def test_another_run_leaves_the_failed_team_as_it_is(tmp_path, capsys):
    engine = Engine(tmp_path, ["ml"], [])
    why = failure(engine)
    assert engine.runs == [(None, set()), ("ml", {TEAMS["ml"], PARTS["ml"]})]
    assert str(why).startswith("the update is done, but for team ml\nteam ml: ml-part: the test")
    assert REMOVALS_WAIT not in str(why)
    assert "goes on without team ml, to remove" in capsys.readouterr().err
    assert FAILED_VARIABLE not in os.environ


def test_a_team_that_fails_only_now_is_left_out_too(tmp_path):
    engine = Engine(tmp_path, ["ml"], ["nlp"], [])
    why = failure(engine)
    assert [set(names.split(",")) for names, _ in engine.runs[1:]] == [{"ml"}, {"ml", "nlp"}]
    assert set(why.teams) == {"ml", "nlp"}
    assert "team ml: " in str(why) and "team nlp: " in str(why)


def test_the_state_is_not_read_again_after_an_update_that_did_not_fail(tmp_path, monkeypatch):
    """Each reading starts Pulumi's CLI."""
    read = []
    monkeypatch.setattr(state, "exported", lambda *_: read.append("once") or State())
    runs.up(Engine(tmp_path, []))
    assert read == ["once"]


def test_without_removals_one_run_is_enough(tmp_path):
    engine = Engine(tmp_path, ["ml"], removals=False)
    assert set(failure(engine).teams) == {"ml"}
    assert len(engine.runs) == 1


def test_a_run_that_leaves_the_team_out_and_fails_for_it_is_the_last(tmp_path):
    engine = Engine(tmp_path, ["ml"], ["ml"])
    failure(engine)
    assert len(engine.runs) == 2
