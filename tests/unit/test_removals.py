"""A removal whose steps are not written down: its note, and what a state forgets after a kill."""

import json

import pytest

from fleet.recovery import file_backend, removals
from fleet.recovery.state import State

ONCE = "PULUMI_SKIP_CHECKPOINTS"
LEAD = "urn:pulumi:lab::kai-fleet::"
TEAM = "kai-fleet:index:Team"
VCLUSTER = f"{TEAM}$kai-fleet:index:VirtualCluster"
HELM = "kubernetes:helm.sh/v3:Release"
HOST = f"{LEAD}kai-fleet:index:Platform$pulumi:providers:kubernetes::host"


class Workspace:
    def __init__(self, env_vars):
        self.env_vars = env_vars


class Stack:
    name = "lab"

    def __init__(self, folder):
        self.workspace = Workspace({"PULUMI_BACKEND_URL": folder})


@pytest.fixture
def stack(tmp_path):
    return Stack(f"file://{tmp_path}")


def test_it_is_noted_whose_removal_runs_and_forgotten_when_it_has_ended_well(stack):
    with removals.noted(stack, "ml"):
        assert removals.cut_off(stack) == "ml"
        assert stack.workspace.env_vars[ONCE] == "true"
    assert removals.cut_off(stack) is None
    assert ONCE not in stack.workspace.env_vars


def test_the_note_outlives_an_error(stack):
    with pytest.raises(RuntimeError), removals.noted(stack, "ml"):
        raise RuntimeError("killed")
    assert removals.cut_off(stack) == "ml"
    assert ONCE not in stack.workspace.env_vars


@pytest.mark.parametrize("url", ["", "s3://states", "https://api.example.com"])
def test_other_backends_write_each_step_as_ever(url):
    stack = Stack(url)
    with removals.noted(stack, "ml"):
        assert ONCE not in stack.workspace.env_vars
        assert removals.cut_off(stack) is None


def test_beside_a_lock_nothing_is_noted_for_the_engine_refuses_to_begin(stack, tmp_path):
    lock = tmp_path / ".pulumi/locks/organization/kai-fleet/lab/1.json"
    lock.parent.mkdir(parents=True)
    held = {"username": "ann", "hostname": "build-3", "pid": 5, "timestamp": "2026-11-21T15:22:18Z"}
    lock.write_text(json.dumps(held))
    assert file_backend.locks("lab", stack.workspace.env_vars) == [lock]
    with removals.noted(stack, "ml"):
        assert removals.cut_off(stack) is None


def test_where_no_note_can_be_written_each_step_is(stack, tmp_path):
    (tmp_path / ".pulumi").write_text("a file")
    with removals.noted(stack, "ml"):
        assert ONCE not in stack.workspace.env_vars


def test_a_note_that_is_none_is_no_note(stack, tmp_path):
    with pytest.raises(RuntimeError), removals.noted(stack, "ml"):
        raise RuntimeError("killed")
    (note,) = tmp_path.rglob("*.removal.json")
    note.write_text("{")
    assert removals.cut_off(stack) is None


def resource(kinds, name, parent, **more):
    urn = f"{LEAD}{kinds}::{name}"
    kind = kinds.rpartition("$")[2]
    custom = not kind.startswith("kai-fleet:index:") or kind.endswith(":Queues")
    return {"urn": urn, "type": kind, "custom": custom, "parent": parent, **more}


def of_team(name):
    """A team as a state has it: on the host, inside, and the steps that wait."""
    team = resource(TEAM, name, f"{LEAD}pulumi:pulumi:Stack::kai-fleet-lab")
    host = {"provider": f"{HOST}::1"}
    vcluster = resource(VCLUSTER, name, team["urn"])
    up = vcluster["urn"]
    space = resource(f"{VCLUSTER}$kubernetes:core/v1:Namespace", f"{name}-namespace", up, **host)
    queues = resource(f"{TEAM}$kai-fleet:index:Queues", f"{name}-on-host", team["urn"])
    pods = resource(f"{VCLUSTER}$command:local:Command", f"{name}-pods", up)
    release = resource(
        f"{VCLUSTER}${HELM}",
        f"{name}-release",
        up,
        dependencies=[space["urn"], pods["urn"]],
        **host,
    )
    goes = {"deletedWith": release["urn"]}
    quota = resource(
        f"{TEAM}$kubernetes:core/v1:ResourceQuota", f"{name}-gpus", team["urn"], **host, **goes
    )
    inside = resource(f"{VCLUSTER}$pulumi:providers:kubernetes", name, up)
    there = {"provider": f"{inside['urn']}::2"}
    kai = resource(f"{TEAM}${HELM}", f"{name}-kai-release", team["urn"], **there, **goes)
    late = resource(f"{TEAM}$kubernetes:core/v1:Pod", f"{name}-pod", team["urn"], **there)
    space["dependencies"] = [pods["urn"]]  # not so in truth: to see that it is forgotten
    return [team, vcluster, pods, space, queues, release, quota, inside, kai, late]


def test_a_vcluster_that_is_gone_takes_with_it_what_was_in_it_and_nothing_of_the_host():
    now = State({"deployment": {"resources": [*of_team("ml"), *of_team("dev")]}})
    removals.drop_vcluster(now, "ml")
    names = [urn.rpartition("::")[2] for urn in removals.on_host(now, "ml")]
    assert names == ["ml-namespace", "ml-on-host"]
    of_ml = [it["urn"].rpartition("::")[2] for it in now.resources if "::ml" in it["urn"]]
    assert of_ml == ["ml", "ml", *names]  # the team and its vCluster are no things of a cluster
    of_dev = [it["urn"] for it in now.resources if "::dev" in it["urn"]]
    assert of_dev == [it["urn"] for it in of_team("dev")]
    space = next(it for it in now.resources if it["urn"].endswith("::ml-namespace"))
    assert space["dependencies"] == []


def test_a_release_that_the_state_has_forgotten_leaves_what_is_on_the_host_to_be_read():
    there = [it for it in of_team("ml") if it["urn"].rpartition("::")[2] in ("ml", "ml-namespace")]
    now = State({"deployment": {"resources": there}})
    removals.drop_vcluster(now, "ml")
    assert [urn.rpartition("::")[2] for urn in removals.on_host(now, "ml")] == ["ml-namespace"]


def test_what_was_granted_to_a_team_with_its_own_stack_has_to_be_read_as_well():
    platform = "kai-fleet:index:Platform$kai-fleet:index:TeamStackAccess"
    access = resource(platform, "host-team-stacks", f"{LEAD}kai-fleet:index:Platform::host")
    accounts = [
        resource(f"{platform}$kubernetes:core/v1:ServiceAccount", name, access["urn"])
        for name in ("host-team-stacks-ml-account", "host-team-stacks-ml-two-account")
    ]
    now = State({"deployment": {"resources": [access, *accounts]}})
    removals.drop_vcluster(now, "ml")  # it is another stack's
    assert len(now.resources) == 3
    assert removals.on_host(now, "ml") == [accounts[0]["urn"]]
