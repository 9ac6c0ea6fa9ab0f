"""`fleet team move`: what is said where Pulumi's own command does not do it."""

from types import SimpleNamespace

import pytest
from pulumi.automation.errors import CommandError

from kai_fleet.cli.engine import runs
from kai_fleet.cli.errors import UserError
from kai_fleet.cli.recovery import object_reader, state
from kai_fleet.cli.recovery.state import State
from kai_fleet.cli.teams.own_stack import move
from kai_fleet.components.releases.helm_record import Forged

TEAM = "urn:pulumi:{}::kai-fleet::kai-fleet:index:Team::ml"


PROVIDER = "urn:pulumi:lab::kai-fleet::pulumi:providers:kubernetes::host"
RELEASE = {
    "urn": f"urn:pulumi:lab::kai-fleet::kai-fleet:index:VirtualCluster${state.RELEASE}::ml-release",
    "type": state.RELEASE,
    "inputs": {"namespace": "team-ml", "name": "ml"},
    "provider": f"{PROVIDER}::id",
}
HOST = {"urn": PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {}}


def moved(monkeypatch, refusal="", *, sure=True, more=()):
    """What is said, and what Pulumi was asked to run."""
    said, ran = [], []

    def run(command, folder, variables):
        ran.append(command)
        if refusal:
            raise CommandError(SimpleNamespace(stdout="", stderr=refusal, code=255))

    pulumi = SimpleNamespace(run=run)
    workspace = SimpleNamespace(pulumi_command=pulumi, work_dir=".", pulumi_version="3.259.0")
    monkeypatch.setattr(
        runs, "stack", lambda name, *_: SimpleNamespace(name=name, workspace=workspace)
    )
    team = {"urn": TEAM.format("lab"), "type": "kai-fleet:index:Team"}
    held = {"lab": State({"resources": [team, *more]})}
    for read in ("exported", "read"):
        monkeypatch.setattr(state, read, lambda it: held.get(it.name, State({})))
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


def test_a_cli_that_fails_at_its_own_check_is_named_with_one_that_does_not(monkeypatch):
    refusal = "error: The Pulumi CLI encountered a snapshot integrity error. This is a bug!"
    with pytest.raises(UserError, match=r"CLI v3\.259\.0.*v3\.190\.0"):
        moved(monkeypatch, refusal)


class Records:
    """The cluster of the team's own stack, whose account wrote the record."""

    forged_ones = ()

    def __init__(self, provider, clusters):
        assert provider == {}

    def forged(self, namespace, name):
        assert (namespace, name) == ("team-ml", "ml")
        if self.forged_ones is None:
            raise object_reader.Unanswered("it does not answer")
        return list(self.forged_ones)


@pytest.mark.parametrize("records", [(), None])
def test_a_record_that_is_well_or_not_read_stops_no_move(monkeypatch, records):
    monkeypatch.setattr(Records, "forged_ones", records)
    monkeypatch.setattr(object_reader, "Cluster", Records)
    said, ran = moved(monkeypatch, more=[HOST, RELEASE])
    assert len(ran) == 1
    assert ("was not looked at: it does not answer" in said[0]) is (records is None)


def test_a_record_that_somebody_wrote_does_not_come_along(monkeypatch):
    forged = [Forged("sh.helm.release.v1.ml.v9", "has a hook, Job steal")]
    monkeypatch.setattr(Records, "forged_ones", forged)
    monkeypatch.setattr(object_reader, "Cluster", Records)
    with pytest.raises(UserError, match="has a hook, Job steal") as why:
        moved(monkeypatch, more=[HOST, RELEASE])
    assert "Nothing was done" in str(why.value)
