"""Components with plain arguments: Outputs in place of values declare the same resources."""

import json
import typing
from collections.abc import Mapping, Sequence

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
from kai_fleet_cli.plan import recorder
from tests.unit.component_samples import (
    GPU_STACK,
    KAI,
    KUBECONFIG,
    NAMESPACE,
    QUEUES,
    TEAM,
    VCLUSTER,
    VERSION,
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
    without_input = {"untested", "chart", "context", "use_existing", "vcluster"}
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
        ("GpuStack", {"provider": ["none"]}, "provider is a list; write a text between quotes"),
        (
            "TeamNamespace",
            {"isolation": {"level": "strict"}},
            "isolation.level is 'strict'; write baseline, restricted or off",
        ),
        (
            "TeamNamespace",
            {"isolation": {"network": {"api_cidrs": ["10.20.0.1"]}}},
            "isolation.network.api_cidrs has '10.20.0.1'; write a network with its mask",
        ),
        (
            "TeamNamespace",
            {"isolation": {"network": {"private": ["fred"]}}},
            "isolation.network.private has 'fred'; write a network with its mask",
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


def with_components():
    """A program that passes components in place of their outputs."""
    guards = HostGuards("guards", {"use_existing": True})
    namespace = TeamNamespace("ml", {"guards": guards})
    vcluster = VirtualCluster("ml", {"namespace": namespace, "kubeconfig": KUBECONFIG})
    kai = KaiScheduler("ml", {"version": VERSION, "vcluster": vcluster})
    queues = {"queues": {"train": {}}, "vcluster": vcluster}
    QueueTree("ml", queues, pulumi.ResourceOptions(depends_on=[kai]))


def test_python_programs_pass_components():
    created = declared(with_components)
    annotations = created["Namespace ml-namespace"].inputs["metadata"]["annotations"]
    assert annotations["guard.kai-fleet/policies"] == "declared"
    assert created["Release ml-release"].inputs["namespace"] == "team-ml"
    for name in ("Release ml-kai-release", "Namespace ml-kai-namespace"):
        assert created[name].provider == created["kubernetes ml"].urn
    assert "kubernetes ml-kai" not in created
    environment = created["Command ml-kai-ready"].inputs["environment"]
    assert environment["PROBE_SECRET"] == "team-ml/vc-ml"
    assert created["Queues ml"].inputs["kubeconfig"] == "[secret]"


def test_what_components_declare_in_a_vcluster_is_deleted_with_it(monkeypatch):
    deleted_with = {}
    register = recorder._Recorder.RegisterResource

    def note(self, request):
        deleted_with[request.name] = request.deletedWith.rpartition("::")[2]
        return register(self, request)

    monkeypatch.setattr(recorder._Recorder, "RegisterResource", note)
    declared(with_components)
    for name in ("ml-kai-release", "ml-kai-namespace", "ml-kai-ready"):
        assert deleted_with[name] == "ml-identity"
    assert deleted_with["ml-release"] == ""


def test_a_component_declares_in_a_vcluster_what_its_team_does():
    def program():
        vcluster = VirtualCluster("ml", VCLUSTER)
        kai = KaiScheduler("ml", {**TEAM["kai"], "vcluster": vcluster})
        after = pulumi.ResourceOptions(depends_on=[kai])
        QueueTree("ml-queues", {**TEAM["queues"], "vcluster": vcluster}, after)

    alone = inputs(declared(program))
    assert alone.items() <= inputs(run(Team, {**without(TEAM, "guard")})).items()


@pytest.mark.parametrize("beside", ["kubeconfig", "context", "probe_environment"])
def test_a_vcluster_is_refused_beside_another_way_into_it(beside):
    given = {"vcluster": "ml", beside: {} if beside == "probe_environment" else "lab"}
    with pytest.raises(pulumi.RunError) as refused:
        run(KaiScheduler, {"version": VERSION, **given})
    assert str(refused.value).splitlines() == [
        f"KaiScheduler ml: {beside} is given beside vcluster, which replaces it; drop one of them",
        "KaiScheduler ml: vcluster is a text; write a VirtualCluster",
    ]


@pytest.mark.parametrize(
    ("component", "args", "says"),
    [
        (TeamNamespace, {"guards": []}, "guards is a list; write a HostGuards or a text between"),
        (
            VirtualCluster,
            {"namespace": []},
            "namespace is a list; write a TeamNamespace or a text",
        ),
        (QueueTree, {"queues": {}, "vcluster": known("ml")}, "vcluster is an Output; write a Virt"),
        (QueueTree, {"queues": {}, "vcluster": 1, "cluster": "a"}, "cluster is given beside vclu"),
        (Team, {"vcluster": {}, "kai": {"version": VERSION, "vcluster": 1}}, "kai.vcluster is no"),
    ],
)
def test_another_value_in_place_of_a_component_is_refused(component, args, says):
    with pytest.raises(pulumi.RunError, match=f"{component.__name__} ml: {says}"):
        declared(lambda: component("ml", args))


def test_a_component_of_another_type_is_refused():
    def program():
        guards = HostGuards("guards", {"use_existing": True})
        VirtualCluster("ml", {"namespace": guards})

    with pytest.raises(
        pulumi.RunError, match="namespace is a HostGuards; write a TeamNamespace or"
    ):
        declared(program)


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


def nested(kind, at=()):
    """Where each TypedDict in the arguments of a component stands, and a value around another."""
    yield at, kind
    for key, hint in fields(kind).items():
        inner, here = hint, (*at, key)
        while typing.get_origin(inner) in (Mapping, Sequence):
            here = (*here, "one" if typing.get_origin(inner) is Mapping else 0)
            inner = typing.get_args(inner)[-1]
        if typing.is_typeddict(inner) and not {*here} & {"children"}:
            yield from nested(inner, here)


def below(value, path):
    """A value at a path of keys and of items of lists."""
    for key in reversed(path):
        value = [value] if key == 0 else {key: value}
    return value


PLACES = [
    pytest.param(name, path, kind, id=".".join(map(str, (name, *path))))
    for name, (_, args_kind, _) in COMPONENTS.items()
    for path, kind in nested(args_kind)
]


@pytest.mark.parametrize(("name", "path", "kind"), PLACES)
def test_an_unknown_argument_is_refused_at_any_depth_with_the_nearest(name, path, kind):
    component = COMPONENTS[name][0]
    known = max(fields(kind), key=len)
    misspelt = known.replace("_", "")[:-1] + "x"
    with pytest.raises(pulumi.RunError) as refused:
        run(component, below({misspelt: "x"}, path))
    place = ".".join(str(key) for key in (*path, misspelt) if key != 0)
    says = f"{name} ml: {place} is no argument; write "
    (line,) = (line for line in str(refused.value).splitlines() if line.startswith(says))
    assert line.removeprefix(says) == known or known in line
    assert all(line.startswith(f"{name} ml: ") for line in str(refused.value).splitlines())


def test_all_mistakes_are_said_at_once_and_no_password_is():
    with pytest.raises(pulumi.RunError) as refused:
        run(
            TeamNamespace,
            {
                "nodePool": {"pool": "ml"},
                "isolations": {"level": "restricted"},
                "account": "false",
                "queues": "ml",
                "scheduler": "kai",
                "registries": {"a.example.com": "s3cret"},
                "isolation": {"network": {"api_ports": ["443"]}},
            },
        )
    assert str(refused.value).splitlines() == [
        f"TeamNamespace ml: {mistake}"
        for mistake in (
            "nodePool is no argument; write node_pool",
            "isolations is no argument; write isolation",
            "scheduler is 'kai'; write inside, host or none",
            "isolation.network.api_ports is a text; write a whole number",
            "queues is a text; write a list",
            "registries.a.example.com is a text; write a mapping with username or password",
            "account is a text; write true or false",
        )
    ]


@pytest.mark.parametrize("component", [KaiScheduler, VirtualCluster])
def test_a_version_that_there_is_not_is_a_mistake_like_others(component):
    name, args = component.__name__, COMPONENTS[component.__name__][2]
    with pytest.raises(pulumi.RunError, match=f"{name} ml: version: .* v0.1.99 is not a version"):
        run(component, {**args, "version": "v0.1.99"})


def test_maps_that_are_free_by_their_type_stay_free():
    args = {"values": {"nodePool": 1}, "labels": {"isolations": "x"}, "topologies": {"nodePol": []}}
    assert run(KaiScheduler, {**KAI, **args})


@pytest.mark.parametrize(
    ("share", "quota", "limit"),
    [
        ({"gpu": 3}, 3, -1),
        ({"gpu": "3"}, 3, -1),
        ({"gpu": {"quota": "500m", "limit": "unlimited"}}, 0.5, -1),
        ({"gpu": "unlimited"}, -1, -1),
    ],
)
def test_a_queue_takes_what_a_stack_file_does(share, quota, limit):
    tree = {**QUEUES, "queues": {"top": {"children": {"leaf": share}}}}
    created = run(QueueTree, tree)
    found = created["Queues ml"].inputs["queues"]["leaf"]["resources"]["gpu"]
    assert (found["quota"], found["limit"]) == (quota, limit)
    team = {**TEAM, "queues": {**TEAM["queues"], "queues": tree["queues"]}}
    assert "Queues ml-queues" in run(Team, team)


def test_every_wrong_quantity_of_a_tree_is_named():
    tree = {"a": {"gpu": "3x", "cpu": {"limit": [1]}}, "b": {"memory": {"quota": True}}}
    with pytest.raises(pulumi.RunError) as refused:
        run(QueueTree, {**QUEUES, "queues": tree})
    assert str(refused.value).splitlines() == [
        "QueueTree ml: queue a: cpu.limit: is no quantity but a list",
        "QueueTree ml: queue a: gpu.quota: '3x' is no Kubernetes quantity",
        "QueueTree ml: queue b: memory.quota: is no quantity but true or false",
    ]
