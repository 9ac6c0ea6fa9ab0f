"""A kind cluster in the stack file: what is declared, what is refused."""

import json

import pytest

from kai_fleet.cluster import probes
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import SECRET, record
from kai_fleet_stack.settings.loading import load

TEAM = {"scheduler": {"mode": "default"}}


def raw(teams=None, kind=None, **more):
    return {"cluster": {"name": "lab", "kind": kind or {}}, "teams": teams or {}, **more}


def mistakes(settings):
    return {m.path.removeprefix("kai-fleet:"): m.message for m in load(settings).mistakes}


def team(**access):
    return {**TEAM, "vcluster": {"access": access}}


@pytest.fixture(scope="module")
def declared():
    settings = raw({"ml": team(port=30000)}, gpu={"provider": "device-plugin"})
    found = record("lab", settings)
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def test_the_cluster_is_made_by_the_scripts_and_deleted_by_them(declared):
    command = declared[("Command", "lab-kind")].inputs
    assert command["create"] == command["update"] == probes.command("kind create")
    assert command["delete"] == probes.command("kind delete")
    assert command["logging"] == "stderr", "stdout is the kubeconfig"
    assert command["environment"]["KIND_NAME"] == "lab"
    config = json.loads(command["environment"]["KIND_CONFIG"])
    assert config["nodes"][0]["role"] == "control-plane"


def test_its_kubeconfig_is_a_secret_and_its_name_its_identity(declared):
    provider = next(i for i in declared.values() if i.urn.endswith("kubernetes::host"))
    assert provider.inputs == {
        "clusterIdentifier": "lab",
        "enablePatchForce": "true",
        "enableSecretMutable": "true",
        "kubeconfig": SECRET,
    }


def test_everything_on_it_goes_with_it_and_what_is_in_a_vcluster_with_that(monkeypatch):
    seen = {}
    register = recorder._Recorder.RegisterResource

    def note(self, request):
        seen[request.name, request.type.rpartition(":")[2]] = request.deletedWith
        return register(self, request)

    monkeypatch.setattr(recorder._Recorder, "RegisterResource", note)
    files = {"ml": ["examples/workloads/cpu.yaml"]}
    record("lab", raw({"ml": team(port=30000)}, workloads=files))
    assert seen.pop(("lab-kind", "Command")) == ""
    assert seen["ml/default/cpu-pod", "Pod"].endswith("::ml-identity")
    for name in (("ml-namespace", "Namespace"), ("ml-release", "Release"), ("ml-ready", "Command")):
        assert seen[name].endswith("::lab-kind"), name


def test_the_device_plugin_takes_the_form_that_works_in_kind(declared):
    values = declared[("Release", "host-gpu-release")].inputs["values"]
    assert values == {
        "devicePlugin": {"enableHostNetwork": True},
        "securityContext": {"privileged": True},
        "nvidiaDriverRoot": "/",
        "runtimeClassName": "nvidia",
    }


def test_a_vcluster_is_reached_at_a_port_of_this_machine(declared):
    environment = declared[("Command", "ml-ready")].inputs["environment"]
    assert (environment["VCLUSTER_ACCESS"], environment["VCLUSTER_HOST"]) == (
        "NodePort",
        "127.0.0.1",
    )
    values = declared[("Release", "ml-release")].inputs["values"]["controlPlane"]
    assert values["service"]["httpsNodePort"] == 30000
    assert "127.0.0.1" in values["proxy"]["extraSANs"]


@pytest.mark.parametrize(
    ("settings", "path", "says"),
    [
        (raw({"a": TEAM}), "teams.a.vcluster.access.port", "write port: 30000"),
        (
            raw({"a": team(port=31000)}),
            "teams.a.vcluster.access.port",
            "on 127.0.0.1 answer 30000 to 30007",
        ),
        (
            raw({"a": team(port=30000), "b": TEAM}, {"nodePorts": 1}),
            "teams.b.vcluster.access.port",
            "set kind.nodePorts higher",
        ),
        (
            {"cluster": {"name": "a", "kind": {}, "context": "a"}},
            "cluster.context",
            "only one of them",
        ),
        (raw(kind={"gpu": "all"}), "cluster.kind.gpu", "write gpus"),
        (raw(kind={"gpus": "some"}), "cluster.kind.gpus", "'auto', 'none' or 'all'"),
        (raw(kind={"nodePorts": 100}), "cluster.kind.nodePorts", "write 64 or less"),
    ],
)
def test_what_a_kind_cluster_cannot_serve_is_refused_by_key(settings, path, says):
    found = mistakes(settings)
    assert list(found) == [path]
    assert says in found[path]


def test_teams_without_a_port_are_told_one_each():
    found = mistakes(raw({"a": TEAM, "b": TEAM, "c": team(port=30001)}))
    reported = [sentence.rpartition("; ")[2] for sentence in found.values()]
    assert reported == ["write port: 30000", "write port: 30002"]
