"""`fleet team move`: which of Pulumi's commands take a team along, and what is said."""

from types import SimpleNamespace

import pytest
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.engine import runs
from kai_fleet_cli.recovery import live_cluster, state
from kai_fleet_cli.recovery.state import ExportedState
from kai_fleet_cli.teams import move
from kubectl_fleet.errors import UserError

TEAM = "urn:pulumi:{}::kai-fleet::kai-fleet:index:Team::ml"


LAB = TEAM.format("lab")


def resource(urn, kind, parent=LAB, **more):
    return {"urn": urn, "type": kind, "parent": parent, **more}


INSIDE = LAB.replace("Team::", "Team$kai-fleet:index:VirtualCluster::")
PROVIDER = INSIDE.replace("VirtualCluster::", "VirtualCluster$pulumi:providers:kubernetes::")
KAI = LAB.replace("Team::ml", "Team$kai-fleet:index:KaiScheduler::ml-kai")
QUEUES = LAB.replace("Team::ml", "Team$kai-fleet:index:Queues::ml-queues")
VIRTUAL = [
    resource(LAB, "kai-fleet:index:Team", ""),
    resource(INSIDE, "kai-fleet:index:VirtualCluster"),
    resource(PROVIDER, "pulumi:providers:kubernetes", INSIDE),
    resource(KAI, "kai-fleet:index:KaiScheduler"),
    resource(f"{KAI}-a", "kubernetes:helm.sh/v3:Release", KAI, provider=f"{PROVIDER}::an-id"),
    resource(f"{KAI}-b", "kubernetes:core/v1:Namespace", KAI, provider=f"{PROVIDER}::an-id"),
    resource(QUEUES, "kai-fleet:index:Queues", deletedWith=PROVIDER),
]
MOVE = ["state", "move", "--yes", "--source", "lab", "--dest", "lab-ml"]
HOST_PROVIDER = "urn:pulumi:lab::kai-fleet::pulumi:providers:kubernetes::host"
RELEASE = {
    "urn": f"urn:pulumi:lab::kai-fleet::kai-fleet:index:VirtualCluster${state.RELEASE}::ml-release",
    "type": state.RELEASE,
    "inputs": {"namespace": "team-ml", "name": "ml"},
    "provider": f"{HOST_PROVIDER}::id",
}
HOST = {"urn": HOST_PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {}}


def moved(monkeypatch, resources=VIRTUAL, *, agree=lambda: None, refused=(), more=()):
    """What is said, and what Pulumi was asked to run; it refuses the commands of these numbers."""
    said, ran = [], []

    def run(command, folder, variables):
        ran.append(command)
        if len(ran) in refused:
            raise create_command_error(CommandResult("", "error: it says why", 255))

    workspace = SimpleNamespace(pulumi_command=SimpleNamespace(run=run), work_dir=".")
    monkeypatch.setattr(
        runs, "stack", lambda name, *_: SimpleNamespace(name=name, workspace=workspace)
    )
    held = {"lab": ExportedState({"resources": [*resources, *more]})}
    for read in ("exported", "read"):
        monkeypatch.setattr(state, read, lambda it: held.get(it.name, ExportedState({})))
    move.move("ml", "lab", "lab-ml", {}, said.append, agree)
    return said, ran


def test_what_is_inside_goes_before_its_provider_and_the_rest(monkeypatch):
    """A move leaves providers behind, and the CLI leaves none without its parent."""
    said, ran = moved(monkeypatch)
    assert ran == [
        [*MOVE, KAI, QUEUES],
        ["state", "delete", "--yes", "--stack", "lab", PROVIDER],
        [*MOVE, LAB],
    ]
    assert said[:3] == [f"pulumi {' '.join(command)}" for command in ran]
    assert said[3:] == ["team ml is now in stack lab-ml; nothing of it was touched"]


def test_a_team_with_nothing_inside_moves_without_its_provider(monkeypatch):
    _, ran = moved(monkeypatch, VIRTUAL[:3])
    assert [command[1] for command in ran] == ["delete", "move"]


def test_a_no_runs_nothing(monkeypatch):
    def no():
        raise UserError("nothing is changed")

    with pytest.raises(UserError, match="nothing is changed"):
        moved(monkeypatch, agree=no, refused=(1, 2, 3))


def test_a_refusal_says_at_what_and_how_to_go_on(monkeypatch):
    with pytest.raises(UserError, match=r"stays in stack lab: `pulumi state move`: .*it says why$"):
        moved(monkeypatch, refused=(1,))
    with pytest.raises(UserError, match=r"`pulumi state delete`: .*: run the same command again"):
        moved(monkeypatch, refused=(2,))


class Records:
    """The cluster of the team's own stack, whose account wrote the record."""

    forged_ones = ()

    def __init__(self, provider, kubeconfig):
        assert provider == {}

    def forged(self, namespace, name):
        assert (namespace, name) == ("team-ml", "ml")
        if self.forged_ones is None:
            raise cluster_reader.NoAnswerError("it does not answer")
        return list(self.forged_ones)


@pytest.mark.parametrize("records", [(), None])
def test_a_record_that_is_well_or_not_read_stops_no_move(monkeypatch, records):
    monkeypatch.setattr(Records, "forged_ones", records)
    monkeypatch.setattr(live_cluster, "LiveCluster", Records)
    said, ran = moved(monkeypatch, more=[HOST, RELEASE])
    assert len(ran) == 3
    assert ("was not looked at: it does not answer" in said[0]) is (records is None)


def test_a_record_that_somebody_wrote_does_not_come_along(monkeypatch):
    forged = [Forged("sh.helm.release.v1.ml.v9", "has a hook, Job steal")]
    monkeypatch.setattr(Records, "forged_ones", forged)
    monkeypatch.setattr(live_cluster, "LiveCluster", Records)
    with pytest.raises(UserError, match="has a hook, Job steal") as why:
        moved(monkeypatch, more=[HOST, RELEASE])
    assert "Nothing was done" in str(why.value)
