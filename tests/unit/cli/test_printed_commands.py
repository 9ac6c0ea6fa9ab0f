"""The command that a message names is run in the state that the message is printed in."""

import pytest

from kai_fleet.names import FLEET
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from tests.unit.cli.teams.team_project import LAB


class Cluster:
    """Stack lab as the engine keeps it: its teams, and whether a run was cut off."""

    def __init__(self, project, monkeypatch):
        self.teams, self.cut_off = {"ml", "dev"}, False
        monkeypatch.setattr("kai_fleet_cli.engine.runs.up", self.up)

    def up(self, stack, *, refresh=False, removed=(), agree=None):
        if self.cut_off and not refresh:
            again = resume.up_command(stack.name)
            raise EngineError(f"it was cut off. Repair it with: {again}", began=False)
        declared = set(reading.read(reading.path_of(stack.name))["teams"])
        self.cut_off = False
        if refused := self.teams - declared - set(removed):
            raise EngineError(f"not in the file any more: {refused}", began=False)
        self.teams = declared
        return Report()


@pytest.fixture
def cluster(project, monkeypatch):
    return Cluster(project, monkeypatch)


def printed(text):
    """The first `fleet` command of a message, as a shell would get it."""
    return text.partition(f"{FLEET} ")[2].partition("\n")[0].split()


@pytest.mark.parametrize("command", [("remove", "ml"), ("switch", "ml", "v0.16.8")])
def test_a_team_command_after_a_broken_run_names_the_repair_to_run_first(project, cluster, command):
    cluster.cut_off = True
    ran = project.run("team", *command, "-s", "lab", "--yes")
    assert "it was cut off" in ran.refusal
    assert ran.refusal.endswith("Nothing was changed, and Pulumi.lab.yaml is as it was")
    assert project.text() == LAB
    assert project.run(*printed(ran.refusal.replace(". Nothing", "\n"))).code == 0
    assert project.run("team", *command, "-s", "lab", "--yes").code == 0
