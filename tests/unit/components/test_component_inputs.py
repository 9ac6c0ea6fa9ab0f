"""Components with plain arguments: Outputs in place of values declare the same resources."""

import json
import typing
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as kubernetes
import pytest

from kai_fleet.backup.virtual_cluster_backup import VirtualClusterBackup, VirtualClusterBackupArgs
from kai_fleet.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.isolation.host_guards import HostGuards, HostGuardsArgs
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.team import Team, TeamArgs
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs
from kai_fleet_cli.plan import recorder
from tests.unit.components.component_samples import (
    BACKUP,
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

pytestmark = pytest.mark.texts("arguments")

COMPONENTS = {
    "GpuStack": (GpuStack, GpuStackArgs, GPU_STACK),
    "HostGuards": (HostGuards, HostGuardsArgs, {"host_kai": True}),
    "TeamNamespace": (TeamNamespace, TeamNamespaceArgs, NAMESPACE),
    "VirtualCluster": (VirtualCluster, VirtualClusterArgs, VCLUSTER),
    "KaiScheduler": (KaiScheduler, KaiSchedulerArgs, KAI),
    "QueueTree": (QueueTree, QueueTreeArgs, QUEUES),
    "Team": (Team, TeamArgs, TEAM),
    "VirtualClusterBackup": (VirtualClusterBackup, VirtualClusterBackupArgs, BACKUP),
}


def run(component, args, kind=None, created=None):
    """What is declared, with Outputs that `made` makes of what may be one; they are of one loop."""
    return declared(lambda: component("ml", with_outputs(kind, args, created) if created else args))


def without(args, *keys):
    return {key: value for key, value in args.items() if key not in keys}


def test_samples_have_every_field_that_may_be_an_output():
    without_input = {"untested", "chart", "context", "use_existing", "vcluster"}
    for name, (_, kind, args) in COMPONENTS.items():
        left_out = fields(kind).keys() - args.keys() - without_input
        assert left_out <= {
            "TeamNamespace": {"node_pool"},
            "Team": {"namespace", "host_queues"},
        }.get(name, set())


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_outputs_declare_what_plain_values_do(name):
    component, kind, args = COMPONENTS[name]
    plain = inputs(run(component, args))
    assert inputs(run(component, args, kind, known)) == plain
    assert f"{name} ml" in plain


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_unknown_values_declare_as_many_resources(name):
    component, kind, args = COMPONENTS[name]
    assert run(component, args, kind, unknown).keys() == run(component, args).keys()


# Arguments that decide about resources, so that they must be known when the program runs.
DECIDING = [
    ("GpuStack", GPU_STACK, "version"),
    ("HostGuards", {}, "host_kai"),
    ("TeamNamespace", NAMESPACE, "name"),
    ("VirtualCluster", VCLUSTER, "mode"),
    ("VirtualCluster", VCLUSTER, "groups"),
    ("KaiScheduler", KAI, "use_existing"),
    ("QueueTree", {"queues": {}}, "vcluster"),
    # The values in these may be Outputs.
    ("VirtualCluster", VCLUSTER, "node_pool"),
    ("VirtualCluster", VCLUSTER, "resources"),
    ("TeamNamespace", NAMESPACE, "queues"),
]


@pytest.mark.parametrize(
    ("name", "args", "field"), DECIDING, ids=[f"{name}-{field}" for name, _, field in DECIDING]
)
def test_arguments_that_decide_about_resources_are_plain(name, args, field, texts):
    component = COMPONENTS[name][0]

    def program():
        component("ml", {**args, field: known(args.get(field, True))})

    texts(*mistakes(component, program, field))


def mistakes(component, program, *fields):
    """The lines of a program's refusal, which are about these fields in this order."""
    with pytest.raises(pulumi.RunError) as refused:
        declared(program)
    lines = str(refused.value).splitlines()
    starts = [f"{component.__name__} ml: {field}" for field in fields]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    return lines


@pytest.mark.parametrize("gateway", ["gw", "gateways/", "/tls", "a/gateways/tls"])
@pytest.mark.parametrize("made", [str, known])
def test_a_gateway_without_its_namespace_is_refused(gateway, made):
    access = {"type": "Gateway", "host": "ml.example.com"}

    def program():
        VirtualCluster("ml", {"context": "lab", "access": {**access, "gateway": made(gateway)}})

    (line,) = mistakes(VirtualCluster, program, "access.gateway")
    assert line.endswith(f"is {gateway!r}; write NAMESPACE/NAME of the Gateway")


def network(**keys):
    return {"isolation": {"network": keys}}


TREE_OF_WRONG_QUANTITIES = {
    "a": {"gpu": "3x", "cpu": {"limit": [1]}},
    "b": {"memory": {"quota": True}},
}
WRONG_OF_A_NAMESPACE = {
    "nodePool": {"pool": "ml"},
    "isolations": {"level": "restricted"},
    "account": "false",
    "queues": "ml",
    "scheduler": "kai",
    "registries": {"a.example.com": "s3cret"},
    "isolation": {"network": {"api_ports": ["443"]}},
}
# Changes of the samples above, and the fields of their mistakes.
WRONG = [
    ("GpuStack", {"provider": "plugin"}, ["provider"]),
    ("GpuStack", {"provider": ["none"]}, ["provider"]),
    ("TeamNamespace", {"isolation": {"level": "strict"}}, ["isolation.level"]),
    ("TeamNamespace", network(api_cidrs=["10.20.0.1"]), ["isolation.network.api_cidrs"]),
    ("TeamNamespace", network(private=["fred"]), ["isolation.network.private"]),
    ("TeamNamespace", network(cidrs=["10.20.0.0/255.255.0.0"]), ["isolation.network.cidrs"]),
    ("TeamNamespace", network(api_ports=[]), ["isolation.network.api_ports"]),
    ("VirtualCluster", {"access": {"type": "NodePort"}}, ["access.host"]),
    ("VirtualCluster", {"groups": {"a": "cluster-admin"}}, ["groups.a"]),
    ("QueueTree", {"queues": {"a": {"memory": {"quota": "4 Gi"}}}}, ["queue a: memory.quota"]),
    ("QueueTree", {"queues": {"a": {"children": {"b": {}}}, "b": {}}}, ["queue b"]),
    (
        "QueueTree",
        {"queues": TREE_OF_WRONG_QUANTITIES},
        ["queue a: cpu.limit", "queue a: gpu.quota", "queue b: memory.quota"],
    ),
    ("VirtualCluster", {"access": None, "tolerations": [None]}, ["tolerations", "access"]),
    ("VirtualCluster", {"version": "v0.1.99"}, ["version"]),
    ("KaiScheduler", {"version": "v0.1.99"}, ["version"]),
]
# Whole arguments.
WRONG_ALONE = [
    ("VirtualCluster", without(VCLUSTER, "kubeconfig", "probe_environment"), ["has no way"]),
    ("KaiScheduler", without(KAI, "kubeconfig", "probe_environment"), ["has no way"]),
    ("QueueTree", without(QUEUES, "kubeconfig", "probe_environment"), ["has no way"]),
    ("KaiScheduler", without(KAI, "kubeconfig"), ["probe_environment"]),
    (
        "TeamNamespace",
        WRONG_OF_A_NAMESPACE,
        [
            *("nodePool", "isolations", "scheduler", "isolation.network.api_ports", "queues"),
            *("registries.a.example.com", "account"),
        ],
    ),
    ("TeamNamespace", {"guards": []}, ["guards"]),
    ("VirtualCluster", {"namespace": []}, ["namespace"]),
    ("QueueTree", {"queues": {}, "vcluster": 1, "cluster": "a"}, ["cluster", "vcluster"]),
    ("Team", {"vcluster": {}, "kai": {"version": VERSION, "vcluster": 1}}, ["kai.vcluster"]),
    *(
        ("KaiScheduler", {"version": VERSION, "vcluster": "ml", **beside}, [*beside, "vcluster"])
        for beside in ({"kubeconfig": "lab"}, {"context": "lab"}, {"probe_environment": {}})
    ),
]
CASES = [
    *((name, {**COMPONENTS[name][2], **changes}, fields) for name, changes, fields in WRONG),
    *WRONG_ALONE,
]


@pytest.mark.parametrize(
    ("name", "args", "fields"),
    CASES,
    ids=[" ".join((name, *fields)) for name, _, fields in CASES],
)
def test_component_names_the_fields_and_what_to_write(name, args, fields, texts):
    component = COMPONENTS[name][0]
    lines = mistakes(component, lambda: component("ml", args), *fields)
    assert "s3cret" not in str(lines)
    texts(*lines)


def test_component_makes_a_provider_of_kubeconfig_or_context():
    created = run(KaiScheduler, KAI)
    provider = created["kubernetes ml-kai"]
    assert provider.inputs["kubeconfig"] == "[secret]"
    assert created["Release ml-kai-release"].provider == provider.urn
    created = run(KaiScheduler, {**without(KAI, "kubeconfig"), "context": "lab"})
    assert created["kubernetes ml-kai"].inputs["context"] == "lab"


def with_components():
    """A program that passes components in place of their outputs."""
    guards = HostGuards("guards", {"use_existing": True})
    namespace = TeamNamespace("ml", {"guards": guards})
    vcluster = VirtualCluster("ml", {"namespace": namespace, "kubeconfig": KUBECONFIG})
    kai = KaiScheduler("ml", {"version": VERSION, "vcluster": vcluster})
    queues = {"queues": {"train": {}}, "vcluster": vcluster}
    QueueTree("ml", queues, pulumi.ResourceOptions(depends_on=[kai]))


def test_component_takes_components():
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


def test_component_in_a_vcluster_is_deleted_with_it(monkeypatch):
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


def test_component_in_a_vcluster_declares_what_team_does():
    def program():
        vcluster = VirtualCluster("ml", VCLUSTER)
        kai = KaiScheduler("ml", {**TEAM["kai"], "vcluster": vcluster})
        after = pulumi.ResourceOptions(depends_on=[kai])
        QueueTree("ml-queues", {**TEAM["queues"], "vcluster": vcluster}, after)

    alone = inputs(declared(program))
    assert alone.items() <= inputs(run(Team, {**without(TEAM, "guard")})).items()


def test_component_refuses_one_of_another_type(texts):
    def program():
        guards = HostGuards("guards", {"use_existing": True})
        VirtualCluster("ml", {"namespace": guards})

    with pytest.raises(pulumi.RunError) as refused:
        declared(program)
    texts(refused.value)


def test_component_uses_the_provider_of_the_options():
    def program():
        host = kubernetes.Provider("host", context="lab")
        on_host = pulumi.ResourceOptions(provider=host)
        VirtualCluster("ml", {**without(VCLUSTER, "kubeconfig"), "context": "lab"}, on_host)

    created = declared(program)
    assert created["Release ml-release"].provider == created["kubernetes host"].urn
    assert created["ClusterRoleBinding ml-view"].provider == created["kubernetes ml"].urn


def test_component_keeps_kubeconfig_and_passwords_secret():
    text = json.dumps([vars(item) for item in run(Team, TEAM).values()])
    for secret in ("t0ken", "s3cret"):
        assert secret not in text
    database = {"type": "external", "data_source": "postgres://fleet:p4ss@db/ml"}
    created = run(VirtualCluster, {**VCLUSTER, "store": database})
    assert "p4ss" not in json.dumps([vars(item) for item in created.values()])


def test_team_no_step_inside_keeps_the_kubeconfig():
    created = run(Team, TEAM)
    for step in ("ml-kai-ready", "ml-kai-clean-up", "ml-shards-apply"):
        environment = created[f"Command {step}"].inputs["environment"]
        assert environment["PROBE_SECRET"] == "team-ml/vc-ml"
        assert environment["PROBE_KUBECONFIG"] == "[secret]", "the host's, as in every step"


def test_queue_tree_without_an_identity_has_that_of_its_authority():
    def cluster(text):
        created = run(QueueTree, {**without(QUEUES, "cluster"), "kubeconfig": text})
        return created["Queues ml"].inputs["cluster"]

    assert cluster(KUBECONFIG) == cluster(KUBECONFIG.replace("t0ken", "other"))
    assert cluster(KUBECONFIG) == cluster(KUBECONFIG.replace("lab:6443", "10.0.0.5:6443"))
    assert cluster(KUBECONFIG) != cluster(KUBECONFIG.replace("YQ==", "Yg=="))


def test_kai_scheduler_use_existing_is_not_declared():
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


def test_component_numbers_of_other_languages_are_whole_again():
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
def test_component_refuses_an_unknown_argument_at_any_depth_with_the_nearest(name, path, kind):
    component = COMPONENTS[name][0]
    known = max(fields(kind), key=len)
    misspelt = known.replace("_", "")[:-1] + "x"
    with pytest.raises(pulumi.RunError) as refused:
        run(component, below({misspelt: "x"}, path))
    place = ".".join(str(key) for key in (*path, misspelt) if key != 0)
    lines = str(refused.value).splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} ml: {place} "))
    assert known in line.partition(";")[2]
    assert all(line.startswith(f"{name} ml: ") for line in lines)


def test_component_maps_that_are_free_by_type_stay_free():
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
def test_queue_tree_takes_what_a_stack_file_does(share, quota, limit):
    tree = {**QUEUES, "queues": {"top": {"children": {"leaf": share}}}}
    created = run(QueueTree, tree)
    found = created["Queues ml"].inputs["queues"]["leaf"]["resources"]["gpu"]
    assert (found["quota"], found["limit"]) == (quota, limit)
    team = {**TEAM, "queues": {**TEAM["queues"], "queues": tree["queues"]}}
    assert "Queues ml-queues" in run(Team, team)
