"""A `fleet team …` that fails, is interrupted or meets a colleague: what is in the files then."""

import os
import signal
import time

import pytest

from kai_fleet_cli.engine.environment import Environment
from kai_fleet_cli.engine.runs import EngineError
from tests.unit.team_project import ADD, LAB


@pytest.mark.parametrize(
    ("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_during_the_update_puts_the_file_back(project, signal_number, code):
    before = project.files()

    def up(stack, show, *, teams, grants, removes):
        assert project.files() != before, "the update runs on the edited file"
        os.kill(os.getpid(), signal_number)
        time.sleep(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kai_fleet_cli.engine.runs.up", up)
        ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == code
    assert project.files() == before
    assert "Pulumi.lab.yaml as before" in ran.out
    # A release whose removal was cut off is in the state as before; plain up would not look.
    assert "undone by\n  .venv/bin/fleet up --refresh --stack lab\n" in ran.out
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_refused_update_puts_the_file_back(project):
    before = project.files()
    project.engine.fails = EngineError("the update failed", began=False)
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == 1
    assert "the files are as they were" in ran.refusal
    assert project.files() == before


def test_an_update_that_failed_half_way_keeps_the_edit(project):
    project.engine.fails = EngineError("the update failed", began=True)
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "The files keep the edit: run it again with\n  make up STACK=lab" in ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")


def test_of_two_updates_the_first_is_not_taken_back(project):
    project.engine.fails, project.engine.fails_at = EngineError("the update failed"), "lab-new"
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--yes")
    assert "the update failed. The files keep the edit: run it again with" in ran.refusal
    assert "kai-fleet:teamStacks:" in project.text()
    assert "name: new" in project.text("lab-new")


def test_a_file_that_changed_meanwhile_is_not_overwritten(project):
    file = project.root / "Pulumi.lab.yaml"

    def destroyed_by_someone(stack, **_):
        file.write_text(LAB + "# a colleague\n")
        return Environment()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kai_fleet_cli.teams.update.for_stack", destroyed_by_someone)
        ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "was changed by something else meanwhile" in ran.refusal
    assert project.text().endswith("# a colleague\n")


def test_an_edit_that_mends_a_file_is_not_held_up_by_what_the_file_was(project, monkeypatch):
    """The sandbox is started for what is going to run, and that was judged already."""
    asked = []

    def for_stack(stack, *, validated=True):
        asked.append(validated)
        return Environment()

    monkeypatch.setattr("kai_fleet_cli.teams.update.for_stack", for_stack)
    assert project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes").code == 0
    assert asked == [False]
