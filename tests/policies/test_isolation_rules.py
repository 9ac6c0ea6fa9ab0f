"""What keeps teams apart cannot be undone by a value, a queue's limit, or silently."""

from __future__ import annotations

import copy

import pytest

from kai_fleet.policies import validation
from kai_fleet.policies.problem import Level

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
ON = {"enabled": True}
ETCD = {"deploy": {"statefulSet": {"scheduling": {"nodeSelector": {"a": "b"}}}}}
ETCD_NODES = "controlPlane.backingStore.etcd.deploy.statefulSet.scheduling.nodeSelector"
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
    problems = validation.validate(raw).problems
    return {(p.rule, p.path): p.message for p in problems if p.level is level}


def with_values(values, **isolation):
    raw = copy.deepcopy(LAB)
    raw["teams"]["ml"] |= {"vcluster": {"values": values}, "isolation": isolation}
    return raw


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"rbac": {"clusterRole": {"extraRules": [{"verbs": ["*"]}]}}}, "rbac.clusterRole"),
        ({"rbac": {"clusterRole": {"enabled": True}}}, "rbac.clusterRole"),
        ({"rbac": {"role": {"extraRules": [{"verbs": ["get"]}]}}}, "rbac.role"),
        ({"controlPlane": {"hostPathMapper": {"enabled": True}}}, "controlPlane.hostPathMapper"),
        (
            {"sync": {"toHost": {"networkPolicies": {"enabled": True}}}},
            "sync.toHost.networkPolicies",
        ),
        ({"sync": {"fromHost": {"secrets": {"enabled": True}}}}, "sync.fromHost.secrets"),
        (
            {"sync": {"fromHost": {"nodes": {"selector": {"all": True}}}}},
            "sync.fromHost.nodes.selector",
        ),
        (
            {"controlPlane": {"statefulSet": {"scheduling": {"nodeSelector": {"a": "b"}}}}},
            "controlPlane.statefulSet.scheduling.nodeSelector",
        ),
        ({"policies": {"podSecurityStandard": "privileged"}}, "policies.podSecurityStandard"),
        ({"platform": {"apiKey": {"namespace": "kube-system", "secretName": "s"}}}, "platform"),
        (
            {"sync": {"toHost": {"customResources": {"roles.rbac.authorization.k8s.io": ON}}}},
            "sync.toHost.customResources",
        ),
        (
            {"policies": {"networkPolicy": {"enabled": True, "workload": {"egress": [{}]}}}},
            "policies.networkPolicy",
        ),
        ({"controlPlane": {"backingStore": {"etcd": ETCD}}}, ETCD_NODES),
        (
            {"experimental": {"deploy": {"host": {"manifests": "kind: Pod"}}}},
            "experimental.deploy.host",
        ),
    ],
)
def test_a_value_that_undoes_isolation_is_refused_unless_it_is_off(values, key):
    found = told(with_values(values))
    place = ("vcluster-isolation", f"kai-fleet:teams.ml.vcluster.values.{key}")
    assert key in found[place] or "Pod Security" in found[place]
    assert not [rule for rule, _ in told(with_values(values, level="off")) if "isolation" in rule]


@pytest.mark.parametrize(
    "values",
    [
        {"rbac": {"clusterRole": {"enabled": "auto"}}},
        {"controlPlane": {"hostPathMapper": {"enabled": False}}},
        {"controlPlane": {"statefulSet": {"resources": {"limits": {"memory": "2Gi"}}}}},
    ],
)
def test_values_that_change_nothing_of_it_pass(values):
    assert told(with_values(values)) == {}


def test_off_is_said_at_each_preview_of_the_team_and_of_a_grant():
    raw = {
        **LAB,
        "isolation": {"level": "off"},
        "teamStacks": {"nlp": {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}},
    }
    found = told(raw, Level.ADVISORY)
    places = [path for rule, path in found if rule == "team-isolation"]
    assert places == ["kai-fleet:teams.ml.isolation.level"]
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


def test_nothing_goes_beside_the_queues_in_host_mode():
    raw = {**HOST, "guard": {"outsideQueues": "allow"}}
    assert "write deny" in told(raw)[("config", "kai-fleet:guard.outsideQueues")]
    raw = {**raw, "isolation": {"level": "off"}}
    assert ("config", "kai-fleet:guard.outsideQueues") not in told(raw)
