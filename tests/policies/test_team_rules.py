"""The rules about teams, KAI's namespace and who shares GPUs, case by case."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.device_sharing import OF_OTHERS, device_sharing
from kai_fleet_policies.model.installed import Kai, ManagedObject
from tests.policies.samples import (
    cases,
    cluster,
    found,
    host,
    judged,
    passes,
    refusal,
    refuses,
    team,
    waits,
    workload,
)

DEV = team("dev", "default", {})
POOLS = [
    *passes(
        host(team("ml"), team("research"), team("dev", "default", {}, gpus=0)),
        host(team("a", pool={"pool": "x", "zone": "1"}), team("b", pool={"zone": "2"})),
        host(team("a", "default", {}), team("b", "default", {})),  # one scheduler sees both
    ),
    *(
        refuses(host(team("ml"), team("research", pool=pool)), "may share nodes with team ml")
        for pool in ({}, {"zone": "a"}, {"kai-fleet/pool": "ml", "zone": "a"})
    ),
    refuses(host(team("ml"), DEV), "or gpus: 0 for dev"),
    waits(host(team("a"), team("b", UNKNOWN)), "node pool"),
]

ONE_MODE = [
    *passes(
        host(team("a"), team("b"), team("c", "default")),
        cluster(teams=(team("a", "host"), team("c", "default"))),
    ),
    refuses(
        cluster(teams=(team("ml"), team("dev", "default"))),
        "running pods; write mode host (or default) here, or take KAI off the host",
    ),
    refuses(host(team("ml"), team("web", "host")), "host mode of web"),
    refuses(cluster(kai=(Kai(None),), teams=(team("ml"),)), "KAI (no version) on the host"),
    waits(cluster(teams=(team("ml", UNKNOWN),)), "mode"),
]

UNIQUE = [
    *passes(host(team("a"), team("b"))),
    refuses(
        host(team("a"), team("a", path="kai-fleet:teams.second")),
        "again in team-a: names are unique on a host; write another name",
    ),
    waits(host(team(UNKNOWN), team("a")), "name is known"),
]

RESERVED = [
    *passes(
        cluster(workload(), workload(namespace=None)),
        cluster(objects=(ManagedObject("Secret", "pull", "kai-scheduler"),)),
        cluster(objects=(ManagedObject("Release", "p", "kube-system"),)),
    ),
    *(
        refuses(cluster(workload(namespace=name)), f"runs in {name}, which is reserved for")
        for name in ("kai-scheduler", "kai-resource-reservation", "gpu-operator", "kube-system")
    ),
    refuses(
        cluster(objects=(ManagedObject("Release", "grafana", "kai-scheduler"),)),
        "removing KAI deletes every Deployment",
    ),
    refuses(cluster(kai=(Kai("v0.9.3", namespace="gpu"),)), "write namespace: kai-scheduler"),
    waits(cluster(workload(namespace=UNKNOWN)), "namespace"),
]


def plugin(sharing):
    return (ManagedObject("Release", "gpu", "gpu", path="kai-fleet:gpu.values", sharing=sharing),)


def with_kai(sharing):
    return cluster(kai=(Kai("v0.9.3", sharing=sharing),), objects=plugin("MPS"))


TWO_KAIS = (team("ml", inside=Cluster(kai=(Kai("v0.9.3"),))), team("b"))
SHARERS = [
    *passes(
        cluster(objects=plugin("")),
        with_kai("Disabled"),
        host(objects=plugin("time-slicing")),
    ),
    refuses(
        cluster(objects=plugin("time-slicing")),
        "shares GPUs by time-slicing while the KAI of the host shares them too; remove the sharing",
    ),
    refuses(host(*TWO_KAIS, objects=plugin("MPS")), "team ml"),
    waits(cluster(objects=plugin(UNKNOWN)), "config"),
    waits(with_kai(UNKNOWN), "whether KAI shares GPUs"),
]


CASES = {
    "team-node-pools": POOLS,
    "team-one-mode": ONE_MODE,
    "team-unique": UNIQUE,
    "namespace-reserved": RESERVED,
    "gpu-one-sharer": SHARERS,
}


@pytest.mark.parametrize(("rule", "seen", "level", "message"), cases(CASES))
def test_a_rule_passes_refuses_or_waits(rule, seen, level, message):
    judged(rule, seen, level, message)


def test_a_finding_is_at_the_key_that_is_wrong():
    assert refusal("gpu-one-sharer", with_kai("HamiCore")).path == "kai-fleet:gpu.values"
    pools = refusal("team-node-pools", host(team("ml"), DEV))
    assert (pools.subject, pools.path) == ("team dev", "kai-fleet:teams.dev.nodePool")


def test_every_team_with_an_overlap_is_named_once():
    teams = [team(f"t{i}", pool={"pool": "same"}) for i in range(4)]
    named = [p.subject for p in found("team-node-pools", host(*teams))]
    assert named == ["team t1", "team t2", "team t3"]


def test_host_mode_costs_gangs():
    assert found("team-gang", host(team("a"), team("b", "default"))) == []
    (problem,) = found("team-gang", host(team("a", "host")))
    assert problem.level is Level.ADVISORY
    assert "one by one, not as a gang; write mode virtual" in problem.message


SLICED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
MPS = {"x": {"sharing": {"mps": {"resources": [1]}}}}


@pytest.mark.parametrize(
    ("values", "sharing"),
    [
        ({"config": {"map": {"default": SLICED}}}, "time-slicing"),
        ({"config": {"map": {"d": SLICED.replace("4", "1")}}}, ""),
        ({"config": {"map": {"d": SLICED.replace("4", "1"), "e": SLICED}}}, "time-slicing"),
        ({"devicePlugin": {"config": {"create": True, "name": "own", "data": {"a": "x"}}}}, ""),
        ({"devicePlugin": {"config": {"name": "somewhere", "default": "any"}}}, OF_OTHERS),
        ({"config": {"name": "somewhere"}}, OF_OTHERS),
        ({"config": {"map": {"d": UNKNOWN}}}, UNKNOWN),
        ({"config": {"map": {"d": "# timeSlicing\nresources: 1"}}}, ""),
        ({"devicePlugin": {"config": {"data": MPS}}}, "MPS"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_the_sharing_of_a_device_plugin_chart_is_read_from_its_values(values, sharing):
    assert device_sharing(values) == sharing


@pytest.mark.parametrize(
    ("mode", "changes", "keys"),
    [
        ("virtual", {"autoscaled": True}, ["autoscaled"]),
        ("default", {"autoscaled": True}, []),
        ("host", {"autoscaled": True}, []),
        ("virtual", {}, []),
    ],
)
def test_a_key_that_the_mode_cannot_keep_is_advised_against(mode, changes, keys):
    warned = found("team-mode", host(replace(team("ml", mode), **changes)))
    assert [each.path.removeprefix("kai-fleet:teams.ml.") for each in warned] == keys
    assert all(each.level is Level.ADVISORY for each in warned)


@pytest.mark.parametrize("on", [True, False])
def test_kai_asks_in_vain_for_nodes_from_inside(on):
    own = Kai("v0.16.8", path="s", values={"global": {"clusterAutoscaling": on}})
    asks = replace(team("ml"), inside=Cluster("ml", kai=(own,)))
    warned = found("team-mode", host(asks))
    assert [each.path for each in warned] == ["s.values.global.clusterAutoscaling"] * on
    assert found("team-mode", cluster(kai=(own,), teams=(team("ml", "host"),))) == []


def test_a_config_of_others_is_said_to_be_undecided_where_kai_shares():
    of_others = plugin(OF_OTHERS)
    (said,) = found("gpu-one-sharer", cluster(objects=of_others))
    assert (said.level, said.path) == (Level.ADVISORY, "kai-fleet:gpu.values")
    assert "cannot decide whether it shares GPUs: its config is a ConfigMap of others" in said.cause
    off = cluster(kai=(Kai("v0.9.3", sharing="Disabled"),), objects=of_others)
    assert found("gpu-one-sharer", off) == []


def sharing_stack(provider, **values):
    """A stack file of one team whose KAI shares GPUs."""
    scheduler = {"mode": "virtual", "version": "v0.16.8"}
    queues = {"default": {"children": {"train": {"gpu": 8}}}}
    team = {"scheduler": scheduler, "nodePool": {"pool": "ml"}, "gpus": 8, "queues": queues}
    cluster = {"name": "prod", "context": "prod"}
    return {
        "cluster": cluster,
        "gpu": {"provider": provider, "values": values},
        "teams": {"ml": team},
    }


def test_a_plan_names_the_key_of_the_device_plugins_config_once():
    named = sharing_stack(
        "operator", devicePlugin={"config": {"name": "time-slicing-config-all", "default": "any"}}
    )
    (said,) = plan_settings(named).problems
    assert (said.check, said.path) == ("gpu-one-sharer", "kai-fleet:gpu.values")
    sliced = sharing_stack("device-plugin", config={"map": {"default": SLICED}})
    (refused,) = plan_settings(sliced).problems
    assert (refused.level, refused.path) == (Level.MANDATORY, "kai-fleet:gpu.values")
    one = sharing_stack("device-plugin", config={"map": {"default": SLICED.replace("4", "1")}})
    assert plan_settings(one).problems == ()
