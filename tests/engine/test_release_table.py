"""Queues as the program declares them, in a real API server, against each KAI version's own CRD."""

from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.fleet.declared import clusters_of
from kai_fleet.releases import KAI
from kai_fleet.settings import load
from kai_fleet_cli.stack_file import reading
from tests.engine.product import api
from tests.engine.sandbox_commands import until

pytestmark = pytest.mark.engine

GROUP, KIND_VERSION, PLURAL = "scheduling.run.ai", "v2", "queues"
# KAI's own CRDs are at hand for the others; these have the schema of their neighbours.
WITHOUT = ("v0.7.13", "v0.8.5", "v0.10.5", "v0.13.4", "v0.15.3", "v0.16.7", "v0.16.9", "v0.18.0")
VERSIONS = [v for v in KAI if v not in WITHOUT]
# The oldest and the newest each time; what lies between them when there is time.
EACH = [
    pytest.param(v, marks=() if v in (VERSIONS[0], VERSIONS[-1]) else pytest.mark.slow)
    for v in VERSIONS
]


def declared() -> dict[str, dict[str, Any]]:
    """Every Queue of the stack files, as a team's tree inside a vCluster or as the host's."""
    found = {}
    for stack in ("prod", "sandbox", "sandbox-host"):
        settings = load(reading.read(reading.path_of(stack))).settings
        assert settings is not None
        for cluster in clusters_of(settings):
            found |= {f"{stack}-{name}": spec for name, spec in cluster.queue_specs.items()}
    return found


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def crds(host):
    """CRDs of the host. The Queue's, which another test's KAI may have left, is put back."""
    crds = client.ApiextensionsV1Api(host)
    name = f"{PLURAL}.{GROUP}"
    before = [it for it in crds.list_custom_resource_definition().items if it.metadata.name == name]
    yield crds
    crds.delete_custom_resource_definition(name)
    if before:
        _until_gone(crds, name)
        metadata = client.V1ObjectMeta(name=name)
        crds.create_custom_resource_definition({**before[0].to_dict(), "metadata": metadata})


def _until_gone(crds: client.ApiextensionsV1Api, name: str) -> None:
    def names() -> set[str]:
        return {it.metadata.name for it in crds.list_custom_resource_definition().items}

    until(lambda: name not in names())


@pytest.fixture
def queue_api(request, host, crds, facts):
    """The Queue API of one KAI version."""
    file = facts / "kai" / "crds" / request.param / f"{GROUP}_{PLURAL}.yaml"
    crd = yaml.safe_load(file.read_text())
    crd["metadata"] = {
        "name": crd["metadata"]["name"],
        "annotations": {"version-under-test": request.param},
    }
    try:
        crds.create_custom_resource_definition(crd)
    except ApiException as why:
        assert why.status == 409
        _until_gone_or_same(crds, crd)
    objects = client.CustomObjectsApi(host)
    until(lambda: _served(objects))
    return objects


def _until_gone_or_same(crds: client.ApiextensionsV1Api, crd: dict[str, Any]) -> None:
    """Put this version's definition in the place of the one that is there."""
    name = crd["metadata"]["name"]
    there = crds.read_custom_resource_definition(name)
    metadata = {**crd["metadata"], "resourceVersion": there.metadata.resource_version}
    crds.replace_custom_resource_definition(name, {**crd, "metadata": metadata})


def _served(objects: client.CustomObjectsApi) -> bool:
    try:
        objects.list_cluster_custom_object(GROUP, KIND_VERSION, PLURAL)
    except ApiException:
        return False
    return True


def sent(objects: client.CustomObjectsApi, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """What the server would store; a field that it does not know is an error."""
    body = {
        "apiVersion": f"{GROUP}/{KIND_VERSION}",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }
    strict = {"dry_run": "All", "field_validation": "Strict"}
    stored: dict[str, Any] = objects.create_cluster_custom_object(
        GROUP, KIND_VERSION, PLURAL, body, **strict
    )
    return stored


@pytest.mark.parametrize("queue_api", EACH, indirect=True)
def test_every_declared_queue_is_valid_and_kept_whole(queue_api):
    queues = declared()
    assert len(queues) > 10
    for name, spec in queues.items():
        assert sent(queue_api, name, spec)["spec"] == spec


@pytest.mark.parametrize("queue_api", VERSIONS[-1:], indirect=True)
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"resources": {"gpu": {"quota": "lots"}}}, "must be of type number"),
        ({"resources": {}, "parent": "default"}, r"unknown field .{0,2}spec\.parent"),
    ],
)
def test_the_server_would_refuse_another_spelling(queue_api, spec, says):
    with pytest.raises(ApiException, match=says):
        sent(queue_api, "wrong", spec)
