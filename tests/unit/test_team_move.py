"""`fleet team move`: which of Pulumi's commands take a team along, and what is said."""

from types import SimpleNamespace

import pytest
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from kai_fleet.cli.engine import runs
from kai_fleet.cli.errors import UserError
from kai_fleet.cli.recovery import state
from kai_fleet.cli.recovery.state import State
from kai_fleet.cli.teams.own_stack import move

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


def moved(monkeypatch, resources=VIRTUAL, *, sure=True, refused=()):
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
    held = {"lab": State({"resources": resources})}
    monkeypatch.setattr(state, "exported", lambda it: held.get(it.name, State({})))
    move.move("ml", "lab", "lab-ml", {}, said.append, lambda: sure)
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
    with pytest.raises(UserError, match="nothing is changed"):
        moved(monkeypatch, sure=False, refused=(1, 2, 3))


def test_a_refusal_says_at_what_and_how_to_go_on(monkeypatch):
    with pytest.raises(UserError, match=r"stays in stack lab: `pulumi state move`: .*it says why$"):
        moved(monkeypatch, refused=(1,))
    with pytest.raises(UserError, match=r"`pulumi state delete`: .*: run the same command again"):
        moved(monkeypatch, refused=(2,))
