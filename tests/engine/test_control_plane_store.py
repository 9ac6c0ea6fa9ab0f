"""A control plane with etcds and replicas, from nothing to its removal; its store stays."""

import pytest
from kubernetes import client

from tests.engine.product import Product, api, namespaces, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

OWN = {
    "replicas": 2,
    "store": {"type": "etcd", "replicas": 3, "size": "1Gi"},
    "resources": {"requests": {"cpu": "30m", "memory": "48Mi", "ephemeralStorage": "8Mi"}},
    "access": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
}


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("store") / "project")
    product = Product.of("sandbox", sandbox, directory)

    def one_team(config):
        config["kai-fleet:gpu"]["provider"] = "none"
        config.pop("kai-fleet:teamStacks")
        config["kai-fleet:teams"] = {
            "dev": {
                "scheduler": {"mode": "default"},
                "nodePool": {"kai-fleet/pool": "dev"},
                "gpus": 2,
                "vcluster": OWN,
            }
        }

    product.edit(one_team)
    return product


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


def test_it_runs_as_a_deployment_with_its_etcds(product, host):
    run = product.up()
    apps, core = client.AppsV1Api(host), client.CoreV1Api(host)
    plane = apps.read_namespaced_deployment("dev", "team-dev")
    assert plane.status.ready_replicas == 2
    requests = plane.spec.template.spec.containers[0].resources.requests
    assert requests == {"cpu": "30m", "memory": "48Mi", "ephemeral-storage": "8Mi"}
    assert apps.read_namespaced_stateful_set("dev-etcd", "team-dev").status.ready_replicas == 3
    claims = core.list_namespaced_persistent_volume_claim("team-dev").items
    assert {it.metadata.name for it in claims} == {f"data-dev-etcd-{n}" for n in range(3)}
    service = core.read_namespaced_service("dev", "team-dev")
    assert service.metadata.annotations["example.com/internal"] == "true"
    inside = api(run.outputs["kubeconfigs"]["dev"])
    assert "kube-system" in namespaces(inside)


def test_a_second_update_changes_nothing(product):
    assert set(product.up().changed) <= {"Stack kai-fleet-sandbox"}


def test_another_store_is_refused_before_anything_is_changed(product, host):
    def embedded(config):
        config["kai-fleet:teams"]["dev"]["vcluster"].pop("store")
        config["kai-fleet:teams"]["dev"]["vcluster"]["replicas"] = 1

    kept = product.file.read_text()
    product.edit(embedded)
    try:
        with pytest.raises(Exception, match="changes from etcd to embedded"):
            product.up()
    finally:
        product.file.write_text(kept)
    assert client.AppsV1Api(host).read_namespaced_deployment("dev", "team-dev")


def test_it_goes_with_its_team(product, host):
    product.edit(lambda config: config["kai-fleet:teams"].clear())
    product.up()
    assert "team-dev" not in namespaces(host)
