"""kai-value-known, kai-value-reaches, vcluster-values, -version-known and -upgrade."""

from dataclasses import replace

import pytest

from kai_fleet.fleet.cluster import Running
from kai_fleet.fleet.model import DeclaredCluster, DeclaredKai, DeclaredTeam
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level
from kai_fleet_policies.validation import validate
from tests.policies.samples import found, open_question


def kai(version, **values):
    release = DeclaredKai(version, path="kai-fleet:kai", values=values)
    return DeclaredCluster("host", path="kai-fleet:cluster", kai=(release,))


def team(mode="virtual", version="v0.36.1", **changes):
    one = DeclaredTeam(
        "ml",
        namespace="team-ml",
        version=version,
        mode=mode,
        path="kai-fleet:teams.ml",
    )
    return DeclaredCluster("host", path="kai-fleet:cluster", teams=(replace(one, **changes),))


def only(rule, cluster):
    (problem,) = found(rule, cluster)
    return problem


def test_known_values_pass():
    values = {"global": {"registry": "mirror", "nodeSelector": {"a": "b"}}}
    assert found("kai-value-known", kai("v0.16.8", **values)) == []
    assert found("kai-value-reaches", kai("v0.16.8", **values)) == []


def test_a_renamed_value_is_refused_at_its_key():
    problem = only("kai-value-known", kai("v0.16.8", binder={"runtimeClasName": "nvidia"}))
    assert problem.level is Level.MANDATORY
    assert problem.path == "kai-fleet:kai.values.binder.runtimeClasName"
    assert "which v0.16.8 does not read; write binder.runtimeClassName" in problem.message


def test_a_value_of_other_versions_names_them():
    problem = only("kai-value-known", kai("v0.9.3", postCleanup={"enabled": False}))
    assert "v0.12.23" in problem.message


@pytest.mark.parametrize(
    ("values", "trap"),
    [
        ({"defaultQueue": {"createDefaultQueue": True}}, "K4"),
        ({"topologyMigration": {"enabled": True}}, "K13"),
        ({"postCleanup": {"enabled": True}}, "K14"),
    ],
)
def test_what_the_program_switched_off_stays_off(values, trap):
    assert trap in only("kai-value-known", kai("v0.16.8", **values)).message


@pytest.mark.parametrize("key", ["nodeSelector", "imagePullSecrets"])
def test_values_that_stop_at_the_operator_are_warned_about(key):
    problem = only("kai-value-reaches", kai("v0.12.23", **{"global": {key: ["x"]}}))
    assert problem.level is Level.ADVISORY
    assert f"sets global.{key}" in problem.message
    assert found("kai-value-reaches", kai("v0.7.11", **{"global": {key: ["x"]}})) == []


def test_values_not_known_yet_are_told():
    release = DeclaredKai("v0.16.8", path="urn:x", values=UNKNOWN)
    question = open_question("kai-value-known", DeclaredCluster("host", kai=(release,)))
    assert "values are known" in question.message


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"controlPlan": {}}, "write controlPlane"),
        ({"sleepMode": {"enabled": False}}, "v0.27.3"),
        (
            {"sync": {"fromHost": {"customResources": {"podgroups.scheduling.run.ai": {}}}}},
            "syncs podgroups",
        ),
        ({"controlPlane": {"backingStore": {"etcd": {"embedded": {"enabled": True}}}}}, "licence"),
        (
            {"controlPlane": {"statefulSet": {"image": {"repository": "loft-sh/vcluster-pro"}}}},
            "Pro image",
        ),
        (
            {"controlPlane": {"distro": {"k8s": {"scheduler": {"enabled": False}}}}},
            "switches the virtual scheduler off",
        ),
        ({"sync": {"fromHost": {"nodes": {"enabled": False}}}}, "switches node sync off"),
    ],
)
def test_values_that_break_a_vcluster_are_refused(values, says):
    problem = only("vcluster-values", team(values=values))
    assert says in problem.message
    assert problem.path.startswith("kai-fleet:teams.ml.vcluster.values")


def test_owners_in_host_mode_are_refused():
    values = {"experimental": {"syncSettings": {"setOwner": True}}}
    assert "pod-grouper" in only("vcluster-values", team("host", values=values)).message
    assert found("vcluster-values", team(values=values)) == []


def test_what_is_free_up_to_a_size_is_told_as_such():
    free = {"controlPlane": {"backingStore": {"etcd": {"embedded": {"enabled": True}}}}}
    paid = {"sleep": {"auto": {"afterInactivity": "1h"}}}
    tier = "a vCluster licence, free up to 64 CPUs and 32 GPUs where vCluster Platform is connected"
    assert tier in only("vcluster-values", team(values=free)).message
    assert "free" not in only("vcluster-values", team(values=paid)).message


def test_a_licence_allows_the_keys_of_paid_tiers_but_not_what_never_starts():
    paid = {"sleep": {"auto": {"afterInactivity": "1h"}}}
    assert found("vcluster-values", team(values=paid))
    assert found("vcluster-values", team(values=paid, licensed=True)) == []
    podgroups = {"sync": {"fromHost": {"customResources": {"podgroups.scheduling.run.ai": {}}}}}
    assert found("vcluster-values", team(values=podgroups, licensed=True))


def test_only_vcluster_versions_of_the_table():
    assert found("vcluster-version-known", team()) == []
    problem = only("vcluster-version-known", team(version="v0.38.0"))
    assert "write v0.37.0 or v0.36.1, or add untested: true beside it" in problem.message
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
    assert [(it.rule, it.path) for it in refused] == [("vcluster-version-known", path)]


def test_a_vcluster_goes_one_line_at_a_time():
    assert found("vcluster-upgrade", team(runs=Running("v0.35.3"))) == []
    assert found("vcluster-upgrade", team()) == [], "the first install has no before"
    problem = only("vcluster-upgrade", team(runs=Running("v0.34.7")))
    assert "write v0.35.3 first" in problem.message
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"controlPlane": {"serviceAccount": {"name": "x"}}},
            "write controlPlane.advanced.serviceAccount",
        ),
        ({"controlPlane": {"statefulset": {}}}, "write controlPlane.statefulSet"),
        ({"controlPlane": {"nosuchthing": {}}}, "refuses; drop it"),
    ],
)
def test_a_value_is_told_by_the_place_that_has_it_and_by_no_other_key(values, says):
    assert only("vcluster-values", team(values=values)).message.endswith(says)


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
        (
            {"vcluster": {"values": {"rbac": {"role": {"enabled": True}}}}},
            "vcluster.values.rbac.role",
        ),
        (
            {"vcluster": {"values": {"controlPlane": {"statefulSet": {"command": ["x"]}}}}},
            "vcluster.values.controlPlane.statefulSet.command",
        ),
        ({"vcluster": {"version": "v0.38.0", "untested": True}}, "vcluster.version"),
        ({"vcluster": {"version": "v0.9.9"}}, "vcluster.version"),
        ({"vcluster": {"replicas": 3}}, "vcluster.replicas"),
        ({"vcluster": {"store": {"type": "embeddedEtcd"}}}, "vcluster.store.type"),
        (
            {"vcluster": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}},
            "vcluster.resources.requests.cpu",
        ),
        ({"vcluster": {"kubernetesVersion": "v1.40.0"}}, "vcluster.kubernetesVersion"),
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
