"""Components as the plugin constructs them for programs in other languages, over gRPC."""

import json
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
import yaml
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import (
    engine_pb2_grpc,
    provider_pb2,
    resource_pb2,
    resource_pb2_grpc,
)

from kai_fleet.names import COMMAND, SECRET
from kai_fleet.provider.constructing import Components, in_python
from kai_fleet.provider.values import python_values, struct
from tests.unit.components.cluster import vcluster_secrets
from tests.unit.components.provider import plugin_process


@pytest.mark.parametrize(("sent", "received"), [(2.0, 2), (1.5, 1.5)])
def test_a_whole_number_is_an_int_and_another_is_left_to_be_refused(sent, received):
    found = in_python(int, sent)
    assert (found, type(found)) == (received, type(received))


PRINTED = {"server": "https://1.2.3.4:443", "uid": "0d9f"}


class Engine(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """An engine in which each step works; it keeps the resources' inputs by type and name."""

    def __init__(self):
        self.inputs = {}

    def GetDeploymentInfo(self, request, context):  # noqa: N802
        features = resource_pb2.ResourceMonitorFeature.values()
        return resource_pb2.DeploymentInfo(supportedFeatures=features)

    def RegisterResource(self, request, context):  # noqa: N802
        self.inputs[request.type, request.name] = python_values(request.object)
        outputs = {"stdout": json.dumps(PRINTED)} if request.type == COMMAND else {}
        return resource_pb2.RegisterResourceResponse(
            urn=f"urn:pulumi:lab::one-team::{request.type}::{request.name}",
            id=f"{request.name}-id" if request.custom else "",
            object=struct({**python_values(request.object), **outputs}),
        )

    def RegisterResourceOutputs(self, request, context):  # noqa: N802
        return Empty()

    def Invoke(self, request, context):  # noqa: N802
        if request.dependsOn:  # as the engine, where what it depends on is not there yet
            return resource_pb2.ResourceInvokeResponse(unknown=True)
        data = {"data": vcluster_secrets.data()} if request.tok == SECRET else {"outputs": {}}
        return resource_pb2.ResourceInvokeResponse(**{"return": struct(data)})

    def Log(self, request, context):  # noqa: N802
        return Empty()


@pytest.fixture
def engine():
    """An engine at a free port of the loopback, and the plugin that it started."""
    engine, server = Engine(), grpc.server(ThreadPoolExecutor(8))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(engine, server)
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with plugin_process.running([plugin_process.LAUNCHER, address]) as (stub, _):

        def construct(kind, inputs):
            request = provider_pb2.ConstructRequest(
                project="one-team",
                stack="lab",
                parallel=8,
                monitorEndpoint=address,
                type=f"kai-fleet:index:{kind}",
                name="ml",
                inputs=inputs,
            )
            return stub.Construct(request).state

        engine.construct = construct
        yield engine
    server.stop(None)


def test_an_update_hands_the_kubeconfig_of_a_vcluster_to_its_kai(engine):
    asked = {"namespace": "team-ml", "nodePool": {"pool": "ml"}, "context": "host"}
    created = engine.construct("VirtualCluster", struct(asked))
    secrets = set()
    kubeconfig = python_values(created, secrets=secrets)["kubeconfig"]
    assert secrets == {kubeconfig}
    assert yaml.safe_load(kubeconfig)["clusters"]
    inputs = struct({"version": "v0.16.8"})
    for key in ("kubeconfig", "probeEnvironment"):
        inputs.fields[key].CopyFrom(created.fields[key])
    engine.construct("KaiScheduler", inputs)
    wait = engine.inputs[COMMAND, "ml-kai-ready"]["environment"]
    assert wait["PROBE_SECRET"] == "team-ml/vc-ml"
    assert "PROBE_KUBECONFIG" not in wait
    provider = engine.inputs["pulumi:providers:kubernetes", "ml-kai"]
    assert provider["kubeconfig"] == kubeconfig


def refused(engine, kind, **inputs):
    with pytest.raises(grpc.RpcError) as error:
        engine.construct(kind, struct(inputs))
    return error.value.details()


def test_every_wrong_argument_of_another_language_is_named_as_it_is_written_there(engine):
    said = refused(
        engine,
        "TeamNamespace",
        guards="declared",
        nodepool={"pool": "ml"},
        isolation={"levl": "restricted", "network": {"apiPort": [443]}},
        tolerations=[{"key": "gpu", "efect": "NoSchedule"}],
        gpus="8",
    )
    assert said.splitlines() == [
        f"TeamNamespace ml: {mistake}"
        for mistake in (
            "nodepool is no argument; write nodePool",
            "gpus is a text; write a number",
            "isolation.levl is no argument; write level",
            "isolation.network.apiPort is no argument; write apiPorts",
            "tolerations.efect is no argument; write effect",
        )
    ]


def test_a_version_or_a_missing_argument_is_no_traceback_in_another_language(engine):
    assert refused(engine, "KaiScheduler", context="lab") == (
        "KaiScheduler ml: version is missing; write it"
    )
    said = refused(engine, "KaiScheduler", context="lab", version="v0.20.1")
    assert said.startswith("KaiScheduler ml: version: KAI v0.20.1 is not a version this program")
    said = refused(engine, "QueueTree", context="lab", queues={"a": {"memory": {"quota": "4 Gi"}}})
    assert said == "QueueTree ml: queue a: memory.quota: '4 Gi' is no Kubernetes quantity"


def test_other_languages_have_no_argument_that_takes_a_component(engine):
    for kind, args in (("KaiScheduler", {"version": "v0.16.8"}), ("QueueTree", {"queues": {}})):
        said = refused(engine, kind, context="lab", vcluster="ml", **args)
        assert said.startswith(f"{kind} ml: vcluster is no argument; write ")
        assert "vcluster" not in said.partition("; write ")[2]
    said = refused(engine, "VirtualCluster", context="lab", namespace=["ml"])
    assert said == "VirtualCluster ml: namespace is a list; write a text between quotes"


def test_the_schema_has_plain_fields_where_python_takes_components():
    schema = json.loads(Components().schema)
    inputs = {
        name.rpartition(":")[2]: found["inputProperties"]
        for name, found in schema["resources"].items()
    }
    assert "probeEnvironment" in inputs["KaiScheduler"]
    assert "vcluster" not in inputs["KaiScheduler"].keys() | inputs["QueueTree"].keys()
    assert inputs["TeamNamespace"]["guards"]["type"] == "string"
    assert inputs["VirtualCluster"]["namespace"]["type"] == "string"
