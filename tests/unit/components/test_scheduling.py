"""Fairness over time, shards and topologies: from the stack file to KAI's objects."""

import json

import pytest

from kai_fleet.kai.chart_values import kai_values
from kai_fleet.releases import kai
from kai_fleet_cli.plan.recorder import record
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.sections.queues import walk

CLUSTER = {"name": "lab", "context": "lab"}
RACK, HOSTNAME = "cloud.example/rack", "kubernetes.io/hostname"
FULL = {
    "fairshare": {
        "window": "168h",
        "halfLife": "24h",
        "kValue": 0.5,
        "prometheus": "http://prometheus.monitoring:9090",
    },
    "shards": {
        "default": {"placement": {"gpu": "spread"}},
        "gold": {"minRuntime": {"preempt": "4h", "reclaim": "1h"}, "queueDepth": {"allocate": 25}},
    },
    "topologies": {"racks": [RACK, HOSTNAME]},
}
LEAF = {r: {"quota": "unlimited"} for r in ("cpu", "memory")} | {"gpu": {"quota": 1}}


def host(version="v0.16.8", queues=None, **scheduling):
    tree = queues or {"top": {**LEAF, "children": {"leaf": LEAF}}}
    return {"cluster": CLUSTER, "kai": {"version": version, **scheduling}, "queues": tree}


def declared(**settings):
    found = record("lab", settings)
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def mistakes(**settings):
    return {m.path: m.message for m in load(settings).mistakes}


def objects(found, name="host-shards-apply"):
    return json.loads(found[("Command", name)].inputs["environment"]["KAI_OBJECTS"])


def test_shards_get_what_is_configured_and_fairness_goes_to_all_of_them():
    shards = objects(declared(**host(**FULL)))["schedulingshards"]
    usage = {
        "clientType": "prometheus",
        "connectionString": "http://prometheus.monitoring:9090",
        "usageParams": {
            "windowSize": "168h",
            "windowType": "sliding",
            "halfLifePeriod": "24h",
        },
    }
    assert shards == {
        "default": {
            "placementStrategy": {"gpu": "spread", "cpu": "binpack"},
            "kValue": 0.5,
            "usageDBConfig": usage,
        },
        "gold": {
            "partitionLabelValue": "gold",
            "minRuntime": {"preemptMinRuntime": "4h", "reclaimMinRuntime": "1h"},
            "queueDepthPerAction": {"allocate": 25},
            "kValue": 0.5,
            "usageDBConfig": usage,
        },
    }


def test_the_config_is_the_charts_where_its_values_have_it_and_ours_before():
    asked = {"enabled": True, "externalPrometheusUrl": "http://prometheus.monitoring:9090"}
    new, old = declared(**host(**FULL)), declared(**host("v0.14.7", **FULL))
    assert new[("Release", "host-kai-release")].inputs["values"]["prometheus"] == asked
    assert "configs" not in objects(new)
    assert "prometheus" not in old[("Release", "host-kai-release")].inputs["values"]
    assert objects(old)["configs"] == {"kai-config": {"prometheus": asked}}


def test_values_that_a_person_writes_win():
    own = {"prometheus": {"enabled": False}}
    values = kai_values(kai("v0.16.8"), {"fairshare": {}, "values": own})
    assert values["prometheus"] == own["prometheus"]


def test_shards_are_applied_when_kai_is_ready_and_again_when_its_release_is_new():
    found = declared(**host(**FULL))
    command = found[("Command", "host-shards-apply")].inputs
    assert command["create"] == command["update"]
    assert command["create"].endswith("fleet-probe shards apply")
    assert command["delete"].endswith("fleet-probe shards remove")
    assert len(command["triggers"]) == 1
    assert command["environment"]["KAI_VERSION"] == "v0.16.8"


def test_topologies_are_cluster_scoped_and_in_order():
    found = declared(**host(**FULL))
    topology = found[("Topology", "host-topologies-racks")].inputs
    assert topology["metadata"] == {"name": "racks"}
    assert topology["spec"] == {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOSTNAME}]}


def test_inside_a_vcluster_they_are_the_teams_own():
    team = {
        "scheduler": {"mode": "virtual", "version": "v0.16.8", **FULL},
        "nodePool": {"pool": "ml"},
        "gpus": 2,
        "queues": {"top": {**LEAF, "shard": "gold", "children": {"leaf": LEAF}}},
    }
    found = declared(cluster=CLUSTER, teams={"ml": team})
    assert set(objects(found, "ml-shards-apply")["schedulingshards"]) == {"default", "gold"}
    inner = next(item for item in found.values() if item.urn.endswith("kubernetes::ml"))
    assert found[("Topology", "ml-topologies-racks")].provider == inner.urn


def test_a_queue_and_what_is_below_it_carry_their_shard():
    tree = {"top": {**LEAF, "shard": "gold", "children": {"leaf": LEAF}}, "other": LEAF}
    settings = load(host(queues=tree, **FULL)).settings
    assert settings is not None
    shards = {placed.name: placed.shard for placed in walk(settings.queues)}
    assert shards == {"top": "gold", "leaf": "gold", "other": None}
    gold = {"kai.scheduler/node-pool": "gold"}
    found = declared(**host(queues=tree, **FULL))
    assert found[("Queues", "host-queues")].inputs["labels"] == {"top": gold, "leaf": gold}


def test_a_shard_that_there_is_not_and_one_below_the_top_are_refused():
    tree = {"top": {**LEAF, "shard": "silver", "children": {"leaf": {**LEAF, "shard": "gold"}}}}
    found = mistakes(**host(queues=tree, **FULL))
    assert set(found) == {
        "kai-fleet:queues.top.shard",
        "kai-fleet:queues.top.children.leaf.shard",
    }
    assert "write one of default, gold" in found["kai-fleet:queues.top.shard"]


@pytest.mark.parametrize(
    ("scheduling", "path", "says"),
    [
        ({"fairshare": {"window": "1w"}}, "fairshare.window", "write 168h"),
        (
            {"fairshare": {"cron": "daily"}},
            "fairshare.cron",
            "write five fields, such as 0 0 * * 1",
        ),
        ({"fairshare": {"kValue": -1}}, "fairshare.kValue", "write 0"),
        (
            {"shards": {"default": {"placement": {"gpu": "pack"}}}},
            "shards.default.placement.gpu",
            "write one of 'binpack' or 'spread'",
        ),
        ({"topologies": {"t": ["a b"]}}, "topologies.t.0", "a label key"),
    ],
)
def test_mistakes_name_the_key_and_what_to_write(scheduling, path, says):
    found = mistakes(**host(**scheduling))
    assert list(found) == [f"kai-fleet:kai.{path}"]
    assert says in found[f"kai-fleet:kai.{path}"]


def test_teams_of_the_hosts_kai_have_no_scheduling_of_their_own():
    teams = {"nlp": {"scheduler": {"mode": "host", "fairshare": {}}, "queue": "leaf"}}
    found = mistakes(**host(), teams=teams)
    assert list(found) == ["kai-fleet:teams.nlp.scheduler.fairshare"]
