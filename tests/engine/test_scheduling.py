"""Fairness over time, shards and topologies on a live API, across edits and another version."""

import pytest
from kubernetes import client

from kai_fleet.finding import Level
from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_cli.stack_file import reading
from tests.engine.product import Product, api, project, queues

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
URL = "http://prometheus.monitoring:9090"


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("scheduling") / "project")
    product = Product.of("sandbox-host", sandbox, directory)

    def configure(config):
        config["kai-fleet:teams"].clear()
        config["kai-fleet:kai"] |= {
            "fairshare": {"window": "24h", "kValue": 0.5, "prometheus": URL},
            "shards": {"gold": {"minRuntime": {"preempt": "4h"}}},
            "topologies": {"racks": ["cloud.example/rack", "kubernetes.io/hostname"]},
        }

    product.edit(configure)
    return product


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def first(product):
    return product.up()


def objects(host, plural, version="v1"):
    found = client.CustomObjectsApi(host).list_cluster_custom_object(
        "kai.scheduler", version, plural
    )
    return {item["metadata"]["name"]: item for item in found["items"]}


def configured(host):
    """What the shards and the Config have of ours."""
    shards = objects(host, "schedulingshards")
    return {
        name: {k: v for k, v in (item.get("spec") or {}).items() if k in ("kValue", "minRuntime")}
        for name, item in shards.items()
    }


def test_shards_have_what_is_configured(first, host):
    shards = objects(host, "schedulingshards")
    assert set(shards) == {"default", "gold"}
    for shard in shards.values():
        assert shard["spec"]["kValue"] == 0.5
        assert shard["spec"]["usageDBConfig"] == {
            "clientType": "prometheus",
            "connectionString": URL,
            "usageParams": {"windowSize": "24h", "windowType": "sliding"},
        }
    assert shards["gold"]["spec"]["partitionLabelValue"] == "gold"
    assert shards["gold"]["spec"]["minRuntime"] == {"preemptMinRuntime": "4h"}


def test_topologies_have_their_levels(first, host):
    levels = objects(host, "topologies", "v1alpha1")["racks"]["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == [
        "cloud.example/rack",
        "kubernetes.io/hostname",
    ]


def test_a_second_update_changes_nothing(first, product):
    assert product.up().changed == {}


def test_the_doctor_misses_the_nodes_of_a_shard(first, product, host, monkeypatch):
    monkeypatch.setattr(reading, "ROOT", product.file.parent)
    core = client.CoreV1Api(host)
    node = core.list_node().items[0].metadata.name
    labels = {"kai.scheduler/node-pool": "gold", "cloud.example/rack": "r1"}

    def mark(values):
        core.patch_node(node, {"metadata": {"labels": values}})

    def found(level):
        return {f.subject for f in diagnose("sandbox-host").findings if f.level is level}

    assert found(Level.MANDATORY) == {"SchedulingShard gold"}
    assert "Topology racks" in found(Level.ADVISORY)
    mark(labels)
    try:
        assert found(Level.MANDATORY) == set()
        assert "check shards" in found(Level.OK)
    finally:
        mark(dict.fromkeys(labels))


@pytest.mark.slow
def test_another_version_keeps_them_and_the_queues(first, product, host):
    uids = {name: q["metadata"]["uid"] for name, q in queues(host).items()}

    def edit(config):
        config["kai-fleet:kai"]["version"] = "v0.14.7"

    product.edit(edit)
    product.up()
    assert configured(host) == {
        "default": {"kValue": 0.5},
        "gold": {"kValue": 0.5, "minRuntime": {"preemptMinRuntime": "4h"}},
    }
    # This version's chart has no values for Prometheus.
    config = objects(host, "configs")["kai-config"]["spec"]
    assert config["prometheus"] == {"enabled": True, "externalPrometheusUrl": URL}
    assert {name: q["metadata"]["uid"] for name, q in queues(host).items()} == uids


@pytest.fixture(scope="module")
def edited(first, product, host):
    """A field that somebody wrote, then another topology and other shards in one update."""
    before = objects(host, "topologies", "v1alpha1")["racks"]["metadata"]["uid"]
    client.CustomObjectsApi(host).patch_cluster_custom_object(
        "kai.scheduler", "v1", "schedulingshards", "default", {"spec": {"args": {"v": "3"}}}
    )

    def edit(config):
        config["kai-fleet:kai"]["topologies"]["racks"] = ["cloud.example/block"]
        config["kai-fleet:kai"]["shards"] = {"default": {"minRuntime": {"reclaim": "1h"}}}

    product.edit(edit)
    return before, product.up()


def test_other_levels_make_the_topology_anew(edited, host):
    before, run = edited
    topologies = {name for name in run.changed if name.startswith("Topology ")}
    assert topologies == {"Topology host-topologies-racks"}
    assert objects(host, "topologies", "v1alpha1")["racks"]["metadata"]["uid"] != before


def test_a_field_that_somebody_wrote_is_kept(edited, host):
    """Only what is configured is ours; the rest of the shard is its owner's."""
    shards = objects(host, "schedulingshards")
    assert set(shards) == {"default"}, "a shard that is no longer configured goes"
    spec = shards["default"]["spec"]
    assert (spec["args"], spec["minRuntime"]) == ({"v": "3"}, {"reclaimMinRuntime": "1h"})


def test_left_out_they_are_let_go_of(edited, product, host):
    def edit(config):
        for key in ("fairshare", "shards", "topologies"):
            config["kai-fleet:kai"].pop(key)

    product.edit(edit)
    product.up()
    assert configured(host) == {"default": {}}
    assert "usageDBConfig" not in objects(host, "schedulingshards")["default"]["spec"]
    assert "prometheus" not in objects(host, "configs")["kai-config"]["spec"]
    assert objects(host, "topologies", "v1alpha1") == {}
