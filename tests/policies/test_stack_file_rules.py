"""Rules about stack files: isolation that is off, GPUs of a team's queue in host mode, nodes of a
control plane, and the Kubernetes inside a vCluster.
"""

import copy

import pytest

from kai_fleet.finding import Level
from kai_fleet_policies.validation import validate

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
ML = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 4}
LAB = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": ML}}
HOST = {
    "cluster": {"name": "lab", "context": "lab"},
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"a": UNLIMITED, "b": UNLIMITED}}},
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}},
    "teamStacks": {"nlp": {"gpus": 3, "parentQueue": "b"}},
}


def told(raw, level=Level.MANDATORY):
    problems = validate(raw).problems
    return {(p.check, p.path): p.message for p in problems if p.level is level}


def test_off_is_said_at_each_preview_of_the_team_and_of_a_grant():
    raw = {
        **LAB,
        "isolation": {"level": "off"},
        "teamStacks": {"nlp": {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}},
    }
    found = told(raw, Level.ADVISORY)
    places = [path for rule, path in found if rule == "team-isolation"]
    assert places == ["kai-fleet:isolation.level"]
    assert "write baseline" in found[("team-isolation", places[0])]


def test_off_is_refused_for_a_team_with_a_stack_of_its_own():
    raw = {**LAB, "isolation": {"level": "off"}, "teamStacks": {"nlp": {"nodePool": {"p": "nlp"}}}}
    place = ("team-isolation", "kai-fleet:teamStacks.nlp.isolation.level")
    assert "write kai-fleet:teamStacks.nlp.isolation: {level: baseline}" in told(raw)[place]


def test_a_teams_queue_holds_no_more_gpus_than_the_team():
    assert told(HOST) == {}
    raw = copy.deepcopy(HOST)
    children = raw["queues"]["top"]["children"]
    children["a"] = {**UNLIMITED, "gpu": {"quota": 2, "limit": 4}}
    children["b"] = {**UNLIMITED, "gpu": {"quota": 4}}
    found = told(raw)
    path = "kai-fleet:queues.top.children"
    assert "write 2 or less" in found[("team-queue-limit", f"{path}.a.gpu.limit")]
    assert "write 3 or less" in found[("team-queue-limit", f"{path}.b.gpu.quota")]


def test_two_teams_of_one_queue_have_its_gpus_together():
    raw = copy.deepcopy(HOST)
    raw["teams"]["dev"] = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}
    raw["queues"]["top"]["children"]["a"] = {**UNLIMITED, "gpu": {"quota": 4}}
    assert told(raw) == {}


def control_planes(of_all=None, **own):
    teams = {
        name: {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": name},
            "vcluster": own.get(name, {}),
        }
        for name in "abc"
    }
    raw = {"cluster": {"name": "p", "context": "p"}, "vcluster": of_all or {}, "teams": teams}
    problems = [p for p in validate(raw).problems if p.check == "vcluster-node-pool"]
    return {p.path: (p.subject, p.message) for p in problems}


def test_nodes_of_another_team_are_told_once_where_they_are_written():
    assert control_planes({"nodePool": {"pool": "a"}}) == {
        "kai-fleet:vcluster.nodePool": (
            "vClusters b and c",
            "would run on {pool: a}, the nodes of team a; write the labels of nodes of no team, or"
            " drop the key: then the team's own nodes run it",
        )
    }
    ((path, (subject, message)),) = control_planes(
        b={"nodePool": {"pool": "c", "zone": "1"}}
    ).items()
    assert path == "kai-fleet:teams.b.vcluster.nodePool" and subject == "vCluster b"
    assert "would run on {pool: c, zone: 1}, the nodes of team c" in message


def test_nodes_of_no_team_and_its_own_pass():
    assert control_planes() == {}
    assert control_planes({"nodePool": {"pool": "platform"}}) == {}
    assert control_planes(a={"nodePool": {"pool": "a"}}) == {}
    # A node of a team may be among them, or not.
    assert control_planes({"nodePool": {"zone": "1"}}) == {}


VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}


def refused(scheduler=VIRTUAL, *, guard="deny", own=None, of_all=None):
    team = {"scheduler": scheduler, "nodePool": {"pool": "a"}, "vcluster": own or {}}
    raw = {
        "cluster": {"name": "p", "context": "p"},
        "guard": {"mode": guard},
        "teams": {"ml": team},
    }
    problems = validate({**raw, "vcluster": of_all or {}}).refused
    return {p.path: p.message for p in problems if p.check == "vcluster-kubernetes"}


@pytest.mark.parametrize("version", ["v1.29.9", "1.28.0", "v1.9.0"])
def test_a_kubernetes_without_the_guards_policies_is_refused(version):
    ((path, message),) = refused(own={"kubernetesVersion": version}).items()
    assert path == "kai-fleet:teams.ml.vcluster.kubernetesVersion"
    assert f"is {version}, and the guard inside needs Kubernetes 1.30 or newer" in message
    assert "write v1.36.0" in message and "kai-fleet:guard: {mode: off}" in message


@pytest.mark.parametrize("version", ["v1.30.0", "1.30.1", "v1.36.0"])
def test_one_with_them_passes(version):
    assert refused(own={"kubernetesVersion": version}) == {}


def test_it_is_told_where_it_is_written():
    assert list(refused(of_all={"kubernetesVersion": "v1.29.9"})) == [
        "kai-fleet:vcluster.kubernetesVersion"
    ]


def test_without_a_guard_inside_any_passes():
    old = {"kubernetesVersion": "v1.29.9"}
    assert refused(guard="off", own=old) == {}
    assert refused({"mode": "default"}, own=old) == {}


def test_the_advice_is_what_that_vcluster_brings():
    (message,) = refused(own={"kubernetesVersion": "v1.29.9", "version": "v0.30.5"}).values()
    assert "write v1.34.0" in message
