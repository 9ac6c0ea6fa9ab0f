"""`fleet team move`: what is said where Pulumi's own command does not do it."""

from types import SimpleNamespace

import pytest
from pulumi.automation.errors import CommandError

from kai_fleet.cli.engine import runs
from kai_fleet.cli.errors import UserError
from kai_fleet.cli.recovery import state
from kai_fleet.cli.recovery.state import State
from kai_fleet.cli.teams.own_stack import move

TEAM = "urn:pulumi:{}::kai-fleet::kai-fleet:index:Team::ml"


def moved(monkeypatch, refusal="", *, sure=True):
    """What is said, and what Pulumi was asked to run."""
    said, ran = [], []

    def run(command, folder, variables):
        ran.append(command)
        if refusal:
            raise CommandError(SimpleNamespace(stdout="", stderr=refusal, code=255))

    pulumi = SimpleNamespace(run=run)
    workspace = SimpleNamespace(pulumi_command=pulumi, work_dir=".", pulumi_version="3.274.1")
    monkeypatch.setattr(
        runs, "stack", lambda name, *_: SimpleNamespace(name=name, workspace=workspace)
    )
    held = {"lab": State({"resources": [{"urn": TEAM.format("lab")}]})}
    monkeypatch.setattr(state, "exported", lambda it: held.get(it.name, State({})))
    move.move("ml", "lab", "lab-ml", {}, said.append, lambda: sure)
    return said, ran


def test_the_command_is_shown_and_run(monkeypatch):
    said, ran = moved(monkeypatch)
    assert ran == [
        ["state", "move", "--yes", "--source", "lab", "--dest", "lab-ml", TEAM.format("lab")]
    ]
    assert said[0] == f"pulumi {' '.join(ran[0])}"
    assert said[1] == "team ml is now in stack lab-ml; nothing of it was touched"


def test_a_no_runs_nothing(monkeypatch):
    with pytest.raises(UserError, match="nothing is changed"):
        moved(monkeypatch, "must not run", sure=False)


@pytest.mark.parametrize(
    "refusal",
    [
        "error: The Pulumi CLI encountered a snapshot integrity error. This is a bug!",
        "Error: failed to verify integrity of source snapshot: child resource X refers to Y",
    ],
)
def test_a_cli_that_fails_at_its_own_check_is_named_with_one_that_does_not(monkeypatch, refusal):
    with pytest.raises(UserError, match=r"CLI v3\.274\.1.*v3\.190\.0"):
        moved(monkeypatch, refusal)
