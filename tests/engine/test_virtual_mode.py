"""Guide 000 on the sandbox: three teams, three schedulers; the tests build on one another."""

from __future__ import annotations

import pytest
from kubernetes import client

from components.releases import kai
from tests.engine.product import (
    Product,
    api,
    cluster_roles,
    deployments,
    namespaces,
    project,
    queues,
)

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    product = Product.of(
        "sandbox", sandbox, project(tmp_path_factory.mktemp("virtual") / "project")
    )
    yield product
    product.stack.destroy()


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def first(product):
    return product.up()


def inside(run, team):
    return api(run.outputs["kubeconfigs"][team])


def switched(product, team, version):
    def edit(config):
        config["kai-fleet:teams"][team]["scheduler"]["version"] = version

    product.edit(edit)
    return product.up()


def test_every_team_gets_its_own_scheduler_version(first):
    assert deployments(inside(first, "ml"), "kai-scheduler") >= set(kai("v0.9.3").deployments)
    research = deployments(inside(first, "research"), "kai-scheduler")
    assert research >= set(kai("v0.7.11").deployments)
    assert "kai-operator" not in research
    assert "kai-scheduler" not in namespaces(inside(first, "dev"))


def test_queues_are_there_with_their_parents_and_limits(first):
    found = queues(inside(first, "ml"))
    assert set(found) == {"default", "train", "serve"}
    assert found["train"]["spec"]["parentQueue"] == "default"
    assert found["serve"]["spec"]["resources"]["gpu"] == {
        "quota": 2,
        "limit": 4,
        "overQuotaWeight": 1,
    }
    assert set(queues(inside(first, "research"))) == {"default", "test"}


def test_a_team_sees_the_nodes_of_its_pool_and_no_others(first):
    nodes = client.CoreV1Api(inside(first, "ml")).list_node().items
    assert {node.metadata.labels["kai-fleet/pool"] for node in nodes} == {"ml"}
    assert {node.status.allocatable["nvidia.com/gpu"] for node in nodes} != {None}


def test_the_gpu_bound_is_on_the_host(first, host):
    quota = client.CoreV1Api(host).read_namespaced_resource_quota("gpus", "team-ml")
    assert quota.spec.hard == {"requests.nvidia.com/gpu": "8"}


def test_no_kubeconfig_is_printed(first):
    for kubeconfig in first.outputs["kubeconfigs"].values():
        secrets = [line.split(": ", 1)[1] for line in kubeconfig.splitlines() if "-data: " in line]
        assert secrets
        assert not [secret for secret in secrets if secret in first.printed]


def test_a_second_update_changes_nothing(first, product):
    assert product.up().changed == {}


def test_a_switch_touches_only_that_teams_scheduler(first, product):
    before = {name: q["metadata"]["uid"] for name, q in queues(inside(first, "ml")).items()}
    run = switched(product, "ml", "v0.16.8")
    assert {name for name in run.changed if "ml-kai" not in name} <= {"Stack kai-fleet-sandbox"}
    assert run.changed["Release ml-kai-release"]
    after = {name: q["metadata"]["uid"] for name, q in queues(inside(run, "ml")).items()}
    assert after == before, "the queues stay while the scheduler under them is replaced"
    assert "kai-scheduler-default" in deployments(inside(run, "ml"), "kai-scheduler")


def test_a_rollback_is_the_same_edit_back(first, product):
    run = switched(product, "ml", "v0.9.3")
    assert {name for name in run.changed if "ml-kai" not in name} <= {"Stack kai-fleet-sandbox"}
    found = deployments(inside(run, "ml"), "kai-scheduler")
    assert found >= set(kai("v0.9.3").deployments)
    assert "kai-scheduler-default" not in found


def test_a_removed_team_is_gone_and_the_others_are_untouched(first, product, host):
    product.edit(lambda config: config["kai-fleet:teams"].pop("research"))
    run = product.up()
    others = {name for name in run.changed if "research" not in name}
    assert others <= {"Stack kai-fleet-sandbox"}
    assert "team-research" not in namespaces(host)
    assert cluster_roles(host, "research") == set()
    assert cluster_roles(host, "ml") != set()
    assert set(queues(inside(first, "ml"))) == {"default", "train", "serve"}


def test_destroy_empties_the_cluster(first, product, host):
    product.stack.destroy()
    assert not namespaces(host) & {"team-ml", "team-research", "team-dev"}
    assert cluster_roles(host, "ml", "research", "dev") == set()
    assert "nvidia-device-plugin" not in namespaces(host)
    classes = client.NodeV1Api(host).list_runtime_class().items
    assert "nvidia" not in {item.metadata.name for item in classes}
