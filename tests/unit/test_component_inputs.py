"""Components with plain arguments: Outputs in place of values declare the same resources."""

import json

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from kai_fleet.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.host_guards import HostGuards, HostGuardsArgs
from kai_fleet.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.team import Team, TeamArgs
from kai_fleet.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.virtual_cluster import VirtualCluster, VirtualClusterArgs
from tests.unit.component_samples import (
    GPU_STACK,
    KAI,
    KUBECONFIG,
    NAMESPACE,
    QUEUES,
    TEAM,
    VCLUSTER,
    declared,
    fields,
    inputs,
    known,
    unknown,
    with_outputs,
)

COMPONENTS = {
    "GpuStack": (GpuStack, GpuStackArgs, GPU_STACK),
    "HostGuards": (HostGuards, HostGuardsArgs, {"host_kai": True}),
    "TeamNamespace": (TeamNamespace, TeamNamespaceArgs, NAMESPACE),
    "VirtualCluster": (VirtualCluster, VirtualClusterArgs, VCLUSTER),
    "KaiScheduler": (KaiScheduler, KaiSchedulerArgs, KAI),
    "QueueTree": (QueueTree, QueueTreeArgs, QUEUES),
    "Team": (Team, TeamArgs, TEAM),
}


def run(component, args, kind=None, created=None):
    """What is declared, with Outputs that `made` makes of what may be one; they are of one loop."""
    return declared(lambda: component("ml", with_outputs(kind, args, created) if created else args))


def without(args, *keys):
    return {key: value for key, value in args.items() if key not in keys}


def test_the_samples_have_every_field_that_may_be_an_output():
    without_input = {"untested", "chart", "context", "use_existing"}
    for name, (_, kind, args) in COMPONENTS.items():
        left_out = fields(kind).keys() - args.keys() - without_input
        assert left_out <= {
            "TeamNamespace": {"node_pool"},
            "Team": {"namespace", "host_queues"},
        }.get(name, set())


@pytest.mark.parametrize("name", COMPONENTS)
def test_outputs_declare_what_plain_values_do(name):
    component, kind, args = COMPONENTS[name]
    plain = inputs(run(component, args))
    assert inputs(run(component, args, kind, known)) == plain
    assert f"{name} ml" in plain


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_preview_shows_as_many_resources_where_values_are_not_known(name):
    component, kind, args = COMPONENTS[name]
    assert run(component, args, kind, unknown).keys() == run(component, args).keys()


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("GpuStack", "version"),
        ("HostGuards", "host_kai"),
        ("TeamNamespace", "name"),
        ("VirtualCluster", "mode"),
        ("VirtualCluster", "groups"),
        ("KaiScheduler", "use_existing"),
    ],
)
def test_what_decides_about_resources_is_plain(name, field):
    component, _, args = COMPONENTS[name]
    says = f"{name} ml: {field} is an Output, and decides which resources are declared"
    with pytest.raises(pulumi.RunError, match=says):
        declared(lambda: component("ml", {**args, field: known(args.get(field, True))}))


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("GpuStack", {"provider": "plugin"}, "provider is 'plugin'; write operator, device-plugin"),
        (
            "TeamNamespace",
            {"isolation": {"level": "strict"}},
            "isolation.level is 'strict'; write baseline, restricted or off",
        ),
        ("VirtualCluster", {"access": {"type": "NodePort"}}, "access.host is missing"),
        ("VirtualCluster", {"groups": {"a": "cluster-admin"}}, "groups.a is 'cluster-admin'; wri"),
        (
            "QueueTree",
            {"queues": {"a": {"memory": {"quota": "4 Gi"}}}},
            "queue a: memory.quota: '4 Gi' is no",
        ),
        (
            "QueueTree",
            {"queues": {"a": {"children": {"b": {}}}, "b": {}}},
            "queue b is there twice",
        ),
    ],
)
def test_a_wrong_choice_names_the_field_and_what_to_write(name, changes, says):
    component, _, args = COMPONENTS[name]
    with pytest.raises(pulumi.RunError) as refused:
        run(component, {**args, **changes})
    assert f"{name} ml: {says}" in str(refused.value)


@pytest.mark.parametrize("name", ["VirtualCluster", "KaiScheduler", "QueueTree"])
def test_without_a_way_to_its_cluster_a_component_says_so(name):
    component, _, args = COMPONENTS[name]
    with pytest.raises(pulumi.RunError, match=f"{name} ml: has no way to its cluster; write kube"):
        run(component, without(args, "kubeconfig", "probe_environment"))


def test_a_provider_is_made_of_the_kubeconfig_or_the_context():
    created = run(KaiScheduler, KAI)
    provider = created["kubernetes ml-kai"]
    assert provider.inputs["kubeconfig"] == "[secret]"
    assert created["Release ml-kai-release"].provider == provider.urn
    created = run(KaiScheduler, {**without(KAI, "kubeconfig"), "context": "lab"})
    assert created["kubernetes ml-kai"].inputs["context"] == "lab"


def test_in_a_vcluster_nothing_is_declared_on_the_host_by_mistake():
    with pytest.raises(pulumi.RunError, match="write kubeconfig: the one of the same Virtual"):
        run(KaiScheduler, without(KAI, "kubeconfig"))


def test_a_provider_of_the_options_is_used():
    def program():
        host = kubernetes.Provider("host", context="lab")
        on_host = pulumi.ResourceOptions(provider=host)
        VirtualCluster("ml", {**without(VCLUSTER, "kubeconfig"), "context": "lab"}, on_host)

    created = declared(program)
    assert created["Release ml-release"].provider == created["kubernetes host"].urn
    assert created["ClusterRoleBinding ml-view"].provider == created["kubernetes ml"].urn


def test_the_kubeconfig_and_the_passwords_are_secrets():
    text = json.dumps([vars(item) for item in run(Team, TEAM).values()])
    for secret in ("t0ken", "s3cret"):
        assert secret not in text
    database = {"type": "external", "data_source": "postgres://fleet:p4ss@db/ml"}
    created = run(VirtualCluster, {**VCLUSTER, "store": database})
    assert "p4ss" not in json.dumps([vars(item) for item in created.values()])


def test_inside_a_vcluster_no_step_keeps_the_kubeconfig():
    created = run(Team, TEAM)
    for step in ("ml-kai-ready", "ml-kai-clean-up", "ml-shards-apply"):
        environment = created[f"Command {step}"].inputs["environment"]
        assert environment["PROBE_SECRET"] == "team-ml/vc-ml"
        assert environment["PROBE_KUBECONFIG"] == "[secret]", "the host's, as in every step"


def test_a_tree_without_an_identity_has_that_of_its_authority():
    def cluster(text):
        created = run(QueueTree, {**without(QUEUES, "cluster"), "kubeconfig": text})
        return created["Queues ml"].inputs["cluster"]

    assert cluster(KUBECONFIG) == cluster(KUBECONFIG.replace("t0ken", "other"))
    assert cluster(KUBECONFIG) == cluster(KUBECONFIG.replace("lab:6443", "10.0.0.5:6443"))
    assert cluster(KUBECONFIG) != cluster(KUBECONFIG.replace("YQ==", "Yg=="))


def test_what_others_made_is_not_declared():
    old = {**KAI, "version": "v0.9.3", "gpu_sharing_mode": "NonMemoryEnforced"}
    old = without(old, "shards", "fairshare", "topologies")
    assert "CustomResourceDefinition ml-kai-cluster-policy" in run(KaiScheduler, old)
    there = {**old, "use_existing": ["namespace", "clusterPolicyCrd"]}
    created = run(KaiScheduler, there)
    assert "CustomResourceDefinition ml-kai-cluster-policy" not in created
    assert "Namespace ml-kai-namespace" not in created
    created = run(KaiScheduler, {**KAI, "use_existing": ["priorityClasses"]})
    values = created["Release ml-kai-release"].inputs["values"]
    assert values["defaultPriorityClasses"] == {"enabled": False}


def test_numbers_of_other_languages_are_whole_again():
    floats = json.loads(json.dumps(VCLUSTER), parse_int=float)
    created = run(VirtualCluster, {**floats, "access": {**floats["access"], "type": "Ingress"}})
    environment = created["Command ml-ready"].inputs["environment"]
    assert environment["VCLUSTER_HOST"] == "10.0.0.5:30001"
    assert environment["VCLUSTER_TIMEOUT"] == "100"
    created = run(KaiScheduler, json.loads(json.dumps(KAI), parse_int=float))
    objects = json.loads(created["Command ml-shards-apply"].inputs["environment"]["KAI_OBJECTS"])
    assert repr(objects["schedulingshards"]["gold"]["queueDepthPerAction"]["allocate"]) == "25"
