"""The components of a host: its GPU stack, its guards, and a team's namespace."""

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from pulumi.runtime import mocks

from kai_fleet.gpu_stack import GpuStack
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import EXISTING
from kai_fleet.releases import GPU_PROVIDERS
from kai_fleet.values import value_at
from tests.unit.components.component_samples import TOLERATIONS, declared, run_by
from tests.unit.stack.stack_arguments import settings_of, stack


def gpu_stack(**args):
    return declared(lambda: GpuStack("gpu", args))


def namespace(**args):
    return declared(lambda: TeamNamespace("ml", {"guards": "declared", **args}))


def values(**args):
    return gpu_stack(**args)["Release gpu-release"].inputs["values"]


@pytest.mark.parametrize("provider", GPU_PROVIDERS)
def test_each_provider_is_its_record(provider):
    assert settings_of(stack(gpu={"provider": provider})).gpu.provider == provider
    record, created = GPU_PROVIDERS[provider], gpu_stack(provider=provider)
    assert ("Release gpu-release" in created) == bool(record.chart)
    assert ("RuntimeClass gpu-runtime-class" in created) == bool(record.runtime_class)
    if record.chart:
        release = created["Release gpu-release"].inputs
        assert (release["chart"], release["version"]) == (record.chart, record.version)
        assert created["Namespace gpu-namespace"].inputs["metadata"]["name"] == release["namespace"]


@pytest.mark.parametrize(("provider", "version"), [("operator", "v9.9.9"), ("none", "")])
def test_a_gpu_stack_without_a_chart_has_no_version(provider, version):
    seen = []
    args = {"provider": provider, "version": "v9.9.9"}
    declared(lambda: GpuStack("gpu", args).version.apply(seen.append))
    assert seen == [version]


@pytest.mark.parametrize("provider", ["operator", "device-plugin"])
def test_daemons_tolerate_the_teams_taints_and_those_of_their_chart(provider):
    assert values(provider=provider) == {}
    found = values(provider=provider, tolerations=TOLERATIONS)
    for key in GPU_PROVIDERS[provider].tolerations:
        tolerations = value_at(found, key)
        own = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
        assert own in tolerations
        assert tolerations[-1] == TOLERATIONS[0]


def test_own_values_of_a_gpu_stack_come_last():
    own = {"tolerations": [{"operator": "Exists"}], "nvidiaDriverRoot": "/run/nvidia"}
    found = values(provider="device-plugin", in_kind=True, tolerations=TOLERATIONS, values=own)
    assert found["tolerations"] == own["tolerations"]
    assert (found["nvidiaDriverRoot"], found["runtimeClassName"]) == ("/run/nvidia", "nvidia")


def test_one_key_admits_the_operators_pods_on_gke():
    assert "ResourceQuota gpu-system-priorities" not in gpu_stack(provider="operator")
    created = gpu_stack(provider="operator", system_priorities=True)
    quota = created["ResourceQuota gpu-system-priorities"].inputs
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == ["system-node-critical", "system-cluster-critical"]


def test_what_others_made_for_gpus_is_not_declared():
    existing = ["namespace", "runtimeClass"]
    created = gpu_stack(provider="device-plugin", use_existing=existing)
    assert {*created} == {"GpuStack gpu", "Release gpu-release"}


class Orders(mocks.MockMonitor):
    """Which resources each one waits for, by name."""

    def __init__(self):
        super().__init__(Answers())
        self.before = {}

    def RegisterResource(self, request):  # noqa: N802 - the protocol's name
        self.before[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
        return super().RegisterResource(request)


class Answers(mocks.Mocks):
    def call(self, args):
        return {}

    def new_resource(self, args):
        return args.name, args.inputs


@pytest.mark.parametrize("preview", [True, False])
def test_a_namespace_waits_for_the_guards_and_what_is_in_it_for_its_bounds(preview):
    def program():
        guards = HostGuards("guards", {})
        team = TeamNamespace("ml", {"guards": guards.ready})
        kubernetes.core.v1.ConfigMap("inside", metadata={"namespace": team.name})

    orders = Orders()
    run_by(Answers(), program, preview=preview, monitor=orders)
    assert {"guards-pods", "guards-devices-binding"} <= orders.before["ml-namespace"]
    bounds = {"ml-gpus", "ml-network-pods", "ml-vcluster-inside-role", "ml-vcluster-binding"}
    assert bounds <= orders.before["inside"]


def test_an_isolated_namespace_without_guards_is_refused():
    with pytest.raises(pulumi.RunError, match=r'write "guards": guards, or isolation'):
        declared(lambda: TeamNamespace("ml", {}))
    created = declared(lambda: TeamNamespace("ml", {"isolation": {"level": "off"}, "gpus": 2}))
    assert {*created} == {"TeamNamespace ml", "Namespace ml-namespace", "ResourceQuota ml-gpus"}
    assert created["Namespace ml-namespace"].inputs["metadata"]["labels"] == {
        "kai-fleet/team": "ml"
    }


def test_a_namespace_of_others_is_labelled_and_stays():
    created = namespace(use_existing=True)
    patch = created["NamespacePatch ml-namespace"]
    assert patch.inputs["metadata"]["labels"]["kai-fleet/namespace"] == "used"
    assert "Namespace ml-namespace" not in created


class OtherHost(Answers):
    """A host that answers the same for each object."""

    def __init__(self, answer):
        self.answer = answer

    def call(self, args):
        return self.answer if args.token == EXISTING else {}


def on_host(declare, answer, *, preview):
    def program():
        provider = kubernetes.Provider("host", context="lab")
        declare(pulumi.ResourceOptions(provider=provider))

    run_by(OtherHost(answer), program, preview=preview)


# A component that is once on a host, what it names and what to write instead.
ONCE = {
    "HostGuards": (
        lambda opts: HostGuards("guards", {}, opts),
        "HostGuards guards: ValidatingAdmissionPolicy kai-fleet-",
        "use_existing: true",
    ),
    "GpuStack": (
        lambda opts: GpuStack("gpu", {"provider": "device-plugin"}, opts),
        "GpuStack gpu: Namespace nvidia-device-plugin is in the cluster already",
        "provider: none",
    ),
    "KaiScheduler": (
        lambda opts: KaiScheduler("host", {"version": "v0.16.8", "context": "lab"}, opts),
        "KaiScheduler host: Namespace kai-scheduler is in the cluster already",
        "leave KaiScheduler out",
    ),
    "topologies": (
        lambda opts: KaiScheduler(
            "host",
            {
                "version": "v0.16.8",
                "context": "lab",
                "use_existing": ["namespace"],
                "topologies": {"racks": ["a/b"]},
            },
            opts,
        ),
        "KaiScheduler host: Topology racks is in the cluster already",
        "names of your own",
    ),
    "TeamNamespace": (
        lambda opts: TeamNamespace("ml", {"guards": "declared"}, opts),
        "TeamNamespace ml: Namespace team-ml is in the cluster already",
        "another name",
    ),
}


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("name", ONCE)
def test_what_another_program_has_on_the_host_is_refused(name, preview):
    declare, says, write = ONCE[name]
    with pytest.raises(pulumi.RunError) as refused:
        on_host(declare, {"there": True}, preview=preview)
    message = str(refused.value)
    assert message.startswith(says)
    assert "Nothing was made" in message
    assert write in message
    on_host(declare, {"there": False}, preview=preview)


@pytest.mark.parametrize("name", ONCE)
def test_a_host_that_cannot_be_read_is_undecided_and_stops_the_update(name, monkeypatch):
    declare, warned = ONCE[name][0], []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_: warned.append(message))
    problem = {"problem": "the API answers 403 Forbidden", "away": False}
    on_host(declare, problem, preview=True)
    (line,) = warned
    assert "cannot decide whether another program has made" in line
    assert "403 Forbidden" in line
    with pytest.raises(pulumi.RunError, match=r"403 Forbidden\. Nothing was made"):
        on_host(declare, problem, preview=False)


@pytest.mark.parametrize(
    ("answer", "refused"), [({"there": True}, False), ({"there": False}, True)]
)
def test_a_second_program_leans_on_the_guards_that_are_there(answer, refused):
    def declare(opts):
        guards = HostGuards("guards", {"use_existing": True}, opts)
        TeamNamespace("ml", {"guards": guards.ready, "use_existing": False}, opts)

    if refused:
        with pytest.raises(pulumi.RunError, match="is not in the cluster, and nothing here"):
            on_host(declare, answer, preview=True)
    else:
        on_host(declare, answer, preview=True)
    created = declared(lambda: HostGuards("guards", {"use_existing": True}))
    assert {*created} == {"HostGuards guards"}
