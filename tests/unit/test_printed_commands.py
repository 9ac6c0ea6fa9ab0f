"""The command that a message names is run in the state that the message is printed in."""

import os
import signal
import time

import pytest

from kai_fleet_cli.engine.runs import EngineError, Outcome
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import file_backend, reconcile, resume, state
from kai_fleet_cli.recovery.state import ExportedState
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import validation
from tests.unit.team_project import ADD, LAB, FakeStack

TEAM = "kai-fleet:index:Team"


class Cluster:
    """Stacks as the engine keeps them: their teams, and whether a run was cut off; the rule about
    teams that the file lacks; and the real look at what a run left.
    """

    def __init__(self, project, monkeypatch):
        self.teams, self.cut_off, self.signal_at = {"lab": {"ml", "dev"}}, set(), ""
        self.project, self.monkeypatch = project, monkeypatch
        monkeypatch.setattr("kai_fleet_cli.engine.runs.stack", self.stack)
        monkeypatch.setattr("kai_fleet_cli.engine.runs.up", self.up)
        monkeypatch.setattr(state, "exported", self.exported)
        monkeypatch.setattr(file_backend, "holder", lambda *_: None)

    def stack(self, name, variables):
        return FakeStack(name, self.project.engine, variables)

    def exported(self, stack):
        had = self.teams.get(stack.name, set())
        urns = [f"urn:pulumi:lab::kai-fleet::{TEAM}::{name}" for name in had]
        thing = {"urn": "urn:pulumi:lab::kai-fleet::x::thing", "type": "x"}
        pending = [{"type": "creating", "resource": thing}] if stack.name in self.cut_off else []
        resources = [{"urn": urn, "type": TEAM} for urn in urns]
        return ExportedState({"resources": resources, "pending_operations": pending})

    def up(self, stack, show, *, teams=None, grants=False, removes=False, refresh=False):
        if not refresh:
            reconcile.before(stack, show, refresh=False)
        self.cut_off.discard(stack.name)
        raw = reading.read(reading.path_of(stack.name))
        declared = {raw["team"]["name"]} if "team" in raw else set(raw["teams"])
        had = self.teams.setdefault(stack.name, set())
        if self.signal_at == stack.name:
            self.signal_at = ""
            had |= declared
            self.cut_off.add(stack.name)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        if teams is None and "team" not in raw:
            named = stack.workspace.env_vars.get(validation.REMOVE_VARIABLE, "").split(",")
            unnamed = validation.unnamed_removals(validation.validate(raw), had)
            if refused := set(unnamed) - set(named):
                raise EngineError(f"not in the file any more: {refused}", began=False)
        self.teams[stack.name] = declared
        self.project.engine.up(stack, show, teams=teams)
        return Outcome({"update": 1})


@pytest.fixture
def cluster(project, monkeypatch):
    return Cluster(project, monkeypatch)


def printed(text):
    """The first `fleet` command of a message, as a shell would get it."""
    return text.partition(f"{resume.FLEET} ")[2].partition("\n")[0].split()


def test_what_undoes_an_interrupted_new_team(project, cluster):
    cluster.signal_at = "lab"
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--yes")
    assert (ran.code, project.text()) == (130, LAB)
    command = printed(ran.out)
    assert command == ["up", "--refresh", "--stack", "lab", "--remove-team", "new"]
    assert project.run(*command).code == 0
    assert cluster.teams["lab"] == {"ml", "dev"}


def test_a_half_made_stack_keeps_its_file_and_both_ways_on_work(project, cluster):
    cluster.signal_at = "lab-new"
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--yes")
    assert ran.code == 130
    assert "Pulumi.lab-new.yaml keep the edit, for stack lab-new is half made" in ran.out
    assert printed(ran.out) == ["up", "--refresh", "--stack", "lab-new"]
    assert project.run(*printed(ran.out)).code == 0
    back = printed(ran.out.partition("take it back with")[2])
    assert project.run(*back, "--yes").code == 0
    assert project.engine.asked[-2:] == ["destroy lab-new, and the stack", "up lab, only new"]
    assert "Pulumi.lab-new.yaml" not in project.files()


def test_a_removal_after_a_broken_run_names_the_repair_that_removes(project, cluster):
    cluster.cut_off.add("lab")
    ran = project.run("team", "remove", "ml", "-s", "lab", "--yes")
    assert "the last run ended in the middle of: x thing (creating)" in ran.refusal
    assert ran.refusal.startswith("The files keep the edit. ")
    assert project.run(*printed(ran.refusal)).code == 0
    assert cluster.teams["lab"] == {"dev"}


def test_a_switch_after_a_broken_run_names_the_repair_that_switches(project, cluster):
    cluster.cut_off.add("lab")
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")
    assert project.run(*printed(ran.refusal)).code == 0


def test_a_lock_that_another_run_holds_leaves_the_files_as_they_were(project, monkeypatch):
    project.engine.fails = UserError("the update cannot start: another one holds the lock")
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "Nothing was changed, and the files are as they were" in ran.refusal
    assert project.text() == LAB


def test_an_update_beside_a_half_made_team_says_what_the_repair_needs(project, cluster):
    """Nobody has agreed yet that the team goes: it is not put into the command unasked."""
    cluster.teams["lab"].add("new")
    cluster.cut_off.add("lab")
    ran = project.run("up", "-s", "lab")
    assert "Deployed and not in Pulumi.lab.yaml: new." in ran.refusal
    assert ran.refusal.endswith("for what is to go add: --remove-team new")
    named = project.run("up", "-s", "lab", "--remove-team", "new").refusal
    assert project.run(*printed(named)).code == 0
    assert cluster.teams["lab"] == {"ml", "dev"}


def test_an_interrupted_update_names_the_teams_that_may_go(project, cluster):
    cluster.teams["lab"].add("new")
    cluster.signal_at = "lab"
    ran = project.run("up", "-s", "lab", "--remove-team", "new")
    assert ran.code in (1, 130)
    assert project.run(*printed(ran.out)).code == 0
    assert cluster.teams["lab"] == {"ml", "dev"}
