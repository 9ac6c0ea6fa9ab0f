"""The role that the platform gives a vCluster's account, beside the one of each version's chart."""

import pytest

from kai_fleet.isolation import rights
from kai_fleet.releases import VCLUSTER
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import value_at
from kai_fleet.vcluster.chart_values import vcluster_values
from kai_fleet_cli.plan.recorder import record
from tests.attacks.host import WITH_KAI_INSIDE, WITH_KAI_ON_HOST

READ = {"get", "list", "watch"}
CHANGE = {"patch", "update"}
WRITE = {"create", "delete", *CHANGE, *READ}
# Values by which a team syncs more.
BY_VALUE = {
    "sync.toHost.ingresses.enabled": ("networking.k8s.io", "ingresses"),
    "sync.toHost.serviceAccounts.enabled": ("", "serviceaccounts"),
    "sync.toHost.podDisruptionBudgets.enabled": ("policy", "poddisruptionbudgets"),
    "sync.toHost.resourceClaims.enabled": ("resource.k8s.io", "resourceclaims"),
    "sync.toHost.gatewayApi.enabled": ("gateway.networking.k8s.io", "httproutes"),
}


def granted(rules):
    """(group, resource, verb, whether bound to names) of every rule."""
    return {
        (group, resource, verb, bool(rule.get("resource_names")))
        for rule in rules
        for group in rule["api_groups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def in_namespace(version=None, values=None):
    args = {"vcluster_version": version, "vcluster_values": values or {}} if version else {}
    return rights.vcluster_in_namespace("ml", args)


@pytest.mark.parametrize("version", VCLUSTER)
def test_it_syncs_what_every_vcluster_syncs(version):
    ours = granted(in_namespace(version))
    for kind in ("configmaps", "secrets", "services", "pods", "persistentvolumeclaims"):
        assert {verb for _, item, verb, _ in ours if item == kind} == WRITE
    for sub in ("exec", "attach", "portforward"):
        assert ("", f"pods/{sub}", "create", False) in ours
    assert ("", "pods/status", "update", False) in ours


@pytest.mark.parametrize("version", VCLUSTER)
def test_what_runs_it_is_changed_by_name_only_and_only_where_certificates_are_renewed(version):
    rules = in_namespace(version)
    writing = [
        item for item in rules if item["api_groups"] == ["apps"] and set(item["verbs"]) - READ
    ]
    named = [(item["resources"], item["verbs"], item.get("resource_names")) for item in writing]
    renewed = [(["statefulsets", "deployments"], ["patch"], ["ml"])]
    assert named == (renewed if VCLUSTER[version].renews else [])


def test_an_etcd_of_its_own_is_restarted_too():
    values = nested("controlPlane.backingStore.etcd.deploy.enabled", True)
    rules = in_namespace("v0.36.1", values)
    assert ["ml-etcd"] in [item.get("resource_names") for item in rules]


@pytest.mark.parametrize("key", BY_VALUE)
def test_what_a_team_syncs_besides_it_may(key):
    of = BY_VALUE[key]
    assert of not in {item[:2] for item in granted(in_namespace("v0.36.1"))}
    with_it = granted(in_namespace("v0.36.1", nested(key, True)))
    assert {verb for group, kind, verb, _ in with_it if (group, kind) == of} == WRITE


@pytest.mark.parametrize("replicas", [3, 3.0], ids=["Python", "another language"])
def test_several_control_planes_agree_by_a_lease(replicas):
    several = nested("controlPlane.statefulSet.highAvailability.replicas", replicas)
    leases = [
        "leases" in {item[1] for item in granted(in_namespace("v0.36.1", values))}
        for values in ({}, several)
    ]
    assert leases == [False, True]


# Rights that no vCluster is given, whatever its version and values.
NEVER = {
    *("pods/eviction", "pods/binding", "pods/proxy", "services/proxy", "services/status"),
    *("serviceaccounts/token", "statefulsets/scale", "deployments/scale", "statefulsets/status"),
    *("persistentvolumeclaims/status", "resourcequotas", "networkpolicies", "limitranges"),
    *("roles", "rolebindings", "services/finalizers", "namespaces"),
}


def test_the_widest_of_them_has_no_right_that_nobody_needs():
    every = [in_namespace()]
    for version in VCLUSTER:
        every += [in_namespace(version, nested(key, True)) for key in BY_VALUE]
    for rules in every:
        assert {item[1] for item in granted(rules)} & NEVER == set()
        assert {item[2] for item in granted(rules)} <= {*WRITE}


def declared(raw):
    return [item for item in record("lab", raw) if item.type.startswith("kubernetes:rbac")]


def test_the_platform_declares_it_in_every_mode_and_for_team_stacks():
    for raw in (WITH_KAI_INSIDE, WITH_KAI_ON_HOST):
        teams = {
            name
            for name in (*raw["teams"], *raw["teamStacks"])
            if raw["teams"].get(name, {}).get("isolation") != {"level": "off"}
        }
        found = {
            (kind, item.inputs["metadata"]["namespace"]): item
            for item in declared(raw)
            if (kind := item.type.rsplit(":", 1)[-1]) in ("Role", "RoleBinding")
            and item.inputs["metadata"]["name"] == rights.VCLUSTER
        }
        assert {kind for kind, _ in found} == {"Role", "RoleBinding"}
        assert {space for _, space in found} == {f"team-{name}" for name in teams}
        for (kind, space), item in found.items():
            if kind == "RoleBinding":
                name = space.removeprefix("team-")
                assert [s["name"] for s in item.inputs["subjects"]] == [f"vc-{name}"]


def test_no_chart_makes_a_role_of_its_own_where_teams_are_isolated():
    def rbac(**args):
        return vcluster_values("ml", args, "team-ml").get("rbac")

    assert rbac() == {"clusterRole": {"enabled": False}, "role": {"enabled": False}}
    assert rbac(isolation="off") is None


@pytest.mark.parametrize("mode", ["virtual", "host", "default"])
@pytest.mark.parametrize("level", ["off", "baseline", "restricted"])
def test_tokens_of_its_accounts_are_in_no_annotation_of_a_pod(mode, level):
    args = {"mode": mode, "isolation": level}
    values = vcluster_values("ml", args, "team-ml")
    assert value_at(values, "sync.toHost.pods.useSecretsForSATokens") is True


def test_of_namespaced_kinds_it_reads_on_the_host_what_a_scheduler_inside_cannot_start_without():
    for place, pods, room in (("inside", {"list", "watch"}, READ), ("host", set(), set())):
        rules = granted(rights.vcluster_on_host({"scheduler": place}))
        assert {verb for _, kind, verb, _ in rules if kind == "pods"} == pods
        assert {verb for _, kind, verb, _ in rules if kind == "csistoragecapacities"} == room
        assert {verb for _, kind, verb, _ in rules if kind != "pods"} == READ


def test_a_team_stack_holds_no_right_only_to_pass_it_on():
    held = granted(rights.content("rights")["team_stack_in_namespace"])
    subresources = {item[1] for item in held if "/" in item[1]}
    assert subresources == {"pods/log"}
    for kind in ("roles", "rolebindings"):
        assert {verb for _, item, verb, _ in held if item == kind} == {"delete", *READ}
    assert {verb for _, item, verb, _ in held if item == "pods"} == {"delete", *READ}
    claims = {verb for _, item, verb, _ in held if item == "persistentvolumeclaims"}
    assert claims == {"delete", "patch", *READ}, "volumes grow, and none is made"
