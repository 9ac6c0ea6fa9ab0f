"""Components of the package use what their cluster has already, as a stack of this project does."""

import copy

import pulumi
import pytest

from kai_fleet.package import pages
from kai_fleet.provider import PluginError
from kai_fleet_cli.plan import recorder
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.package_requests import constructed

CLASS = "/apis/node.k8s.io/v1/runtimeclasses/nvidia"
THERE = (
    CLASS,
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com",
    *(f"/api/v1/namespaces/{it}" for it in ("nvidia-device-plugin", "kai-scheduler", "team-ml")),
)


@pytest.fixture
def cluster():
    """An API server, and the way to it as an input."""
    with serving() as (api, url):
        yield api, {"name": "lab", "kubeconfig": kubeconfig(url)}


def declared(kind, name, **inputs):
    def program():
        constructed(kind, name, inputs, pulumi.ResourceOptions())

    found = recorder.record("lab", {}, program=program)
    return {(it.type.rpartition(":")[2], it.name) for it in found}


def test_what_is_there_is_not_declared(cluster):
    api, way = cluster
    api.answers |= {path: (200, {"handler": "nvidia", "metadata": {}}) for path in THERE}
    gpu = declared("GpuStack", "gpu", cluster=way, provider="device-plugin")
    assert not {kind for kind, _ in gpu} & {"RuntimeClass", "Namespace"}
    kai = declared("KaiScheduler", "kai", cluster=way, version="v0.9.20")
    assert not {kind for kind, _ in kai} & {"CustomResourceDefinition", "Namespace"}
    _, example = pages.EXAMPLES["Team"]
    team = declared("Team", "ml", **{**copy.deepcopy(dict(example)), "cluster": way})
    assert ("NamespacePatch", "ml-namespace") in team


def test_what_is_not_there_is_made(cluster):
    _, way = cluster
    gpu = declared("GpuStack", "gpu", cluster=way, provider="device-plugin")
    assert {kind for kind, _ in gpu} >= {"RuntimeClass", "Namespace"}


def test_what_does_not_fit_is_refused(cluster):
    api, way = cluster
    api.answers[CLASS] = (200, {"handler": "other", "metadata": {}})
    with pytest.raises((PluginError, pulumi.RunError), match="handler other"):
        declared("GpuStack", "gpu", cluster=way, provider="device-plugin")
