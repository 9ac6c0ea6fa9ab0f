"""kai-value-reaches, vcluster-version-known and -upgrade; what is wrong once for all teams."""

from dataclasses import replace

import pytest

from kai_fleet.finding import Level
from kai_fleet_policies.model.cluster import Cluster, Kai, Running, Team
from kai_fleet_policies.validation import validate
from tests.policies.samples import found


def kai(version, **values):
    release = Kai(version, path="kai-fleet:kai", values=values)
    return Cluster("host", path="kai-fleet:cluster", kai=(release,))


def team(mode="virtual", version="v0.36.1", **changes):
    one = Team("ml", namespace="team-ml", version=version, mode=mode, path="kai-fleet:teams.ml")
    return Cluster("host", path="kai-fleet:cluster", teams=(replace(one, **changes),))


def only(rule, cluster):
    (problem,) = found(rule, cluster)
    return problem


@pytest.mark.parametrize("key", ["nodeSelector", "imagePullSecrets"])
def test_values_that_stop_at_the_operator_are_warned_about(key):
    problem = only("kai-value-reaches", kai("v0.12.23", **{"global": {key: ["x"]}}))
    assert problem.level is Level.ADVISORY
    assert problem.path == f"kai-fleet:kai.values.global.{key}"
    assert found("kai-value-reaches", kai("v0.7.11", **{"global": {key: ["x"]}})) == []


def test_only_vcluster_versions_of_the_table():
    assert found("vcluster-version-known", team()) == []
    problem = only("vcluster-version-known", team(version="v0.38.0"))
    assert "write v0.36.1, or add untested: true beside it" in problem.message
    assert "untested" not in only("vcluster-version-known", team(version="0.36.1")).message


@pytest.mark.parametrize(
    ("of_all", "own", "path"),
    [
        ("v0.1.0", {}, "kai-fleet:vcluster.version"),
        ("v0.36.1", {"version": "v0.1.0"}, "kai-fleet:teams.ml.vcluster.version"),
    ],
)
def test_a_vclusters_version_is_refused_where_it_is_written(of_all, own, path):
    ml = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "a"}, "vcluster": own}
    raw = {"cluster": {"name": "p", "context": "p"}, "vcluster": {"version": of_all}}
    refused = validate({**raw, "teams": {"ml": ml}}).refused
    assert [(it.check, it.path) for it in refused] == [("vcluster-version-known", path)]


def test_a_vcluster_goes_one_line_at_a_time():
    assert found("vcluster-upgrade", team(runs=Running("v0.35.3"))) == []
    assert found("vcluster-upgrade", team()) == [], "the first install has no before"
    problem = only("vcluster-upgrade", team(runs=Running("v0.34.7")))
    assert "write v0.35.3 first" in problem.message
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"


def fleet_of_teams(names="abcdef", **stack):
    teams = {
        name: {"scheduler": {"mode": "default"}, "nodePool": {"pool": name}, **stack.get(name, {})}
        for name in names
    }
    rest = {key: value for key, value in stack.items() if key not in teams}
    raw = {"cluster": {"name": "p", "context": "p"}, **rest, "teams": teams}
    return [(it.path, it.subject) for it in validate(raw).problems]


@pytest.mark.parametrize(
    ("stack", "path"),
    [
        ({"vcluster": {"values": {"controlPlan": {}}}}, "vcluster.values.controlPlan"),
        ({"vcluster": {"values": {"rbac": {"role": {"enabled": True}}}}}, "vcluster.values.rbac"),
        (
            {"vcluster": {"values": {"controlPlane": {"statefulSet": {"command": ["x"]}}}}},
            "vcluster.values.controlPlane.statefulSet.command",
        ),
        ({"vcluster": {"version": "v0.38.0", "untested": True}}, "vcluster.version"),
        ({"vcluster": {"version": "v0.9.9"}}, "vcluster.version"),
        ({"vcluster": {"replicas": 3}}, "vcluster.replicas"),
        ({"vcluster": {"store": {"type": "embeddedEtcd"}}}, "vcluster.store.type"),
        ({"isolation": {"level": "off"}}, "isolation.level"),
    ],
)
def test_what_is_written_once_for_all_teams_is_told_once_where_it_is_written(stack, path):
    told = fleet_of_teams(**stack)
    assert {it for it, _ in told} == {f"kai-fleet:{path}"}
    assert any(subject.endswith(" a, b, c, d, e and f") for _, subject in told)
    assert len(told) == len(set(told)) <= 2


def test_a_teams_own_value_over_that_of_all_is_told_at_the_team():
    own = {"vcluster": {"values": {"controlPlane": {"statefulset": {"x": 1}}}}}
    told = fleet_of_teams("ab", vcluster={"values": {"controlPlan": {}}}, b=own)
    assert set(told) == {
        ("kai-fleet:teams.b.vcluster.values.controlPlane.statefulset", "vCluster b"),
        ("kai-fleet:vcluster.values.controlPlan", "vClusters a and b"),
    }


def test_the_access_of_all_teams_is_told_once():
    told = fleet_of_teams(vcluster={"access": {"type": "NodePort"}})
    assert told == [("kai-fleet:vcluster.access.host", "key host")]
    own = {"vcluster": {"access": {"type": "NodePort"}}}
    assert fleet_of_teams("ab", b=own) == [("kai-fleet:teams.b.vcluster.access.host", "key host")]
