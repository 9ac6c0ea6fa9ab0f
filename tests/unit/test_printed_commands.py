"""The command that a message names is run in the state that the message is printed in."""

import os
import signal
import time

import pytest

from kai_fleet_cli.engine.runs import EngineError, Outcome
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


def test_an_interrupted_team_command_names_the_update_that_goes_on(project, cluster):
    cluster.signal_at = "lab"
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--yes")
    assert ran.code == 130
    assert project.run(*printed(ran.out)).code == 0
    assert cluster.teams["lab"] == {"ml", "dev", "new"}
    assert project.run("team", "remove", "new", "-s", "lab", "--yes").code == 0
    assert (project.text(), cluster.teams["lab"]) == (LAB, {"ml", "dev"})


@pytest.mark.parametrize("command", [("remove", "ml"), ("switch", "ml", "v0.16.8")])
def test_a_team_command_after_a_broken_run_names_the_repair_to_run_first(project, cluster, command):
    cluster.cut_off.add("lab")
    ran = project.run("team", *command, "-s", "lab", "--yes")
    assert "the last run ended in the middle of: x thing (creating)" in ran.refusal
    assert ran.refusal.endswith("Nothing was changed, and Pulumi.lab.yaml is as it was")
    assert project.text() == LAB
    assert project.run(*printed(ran.refusal.replace(". Nothing", "\n"))).code == 0
    assert project.run("team", *command, "-s", "lab", "--yes").code == 0


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
