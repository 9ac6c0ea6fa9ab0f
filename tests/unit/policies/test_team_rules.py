"""The rules about teams, KAI's namespace and who shares GPUs, case by case."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.device_sharing import OF_OTHERS, device_sharing
from kai_fleet_policies.model.installed import Kai, ManagedObject
from tests.unit.policies.samples import (
    cases,
    cluster,
    found,
    host,
    passing,
    refuses,
    team,
    waits,
    workload,
)

pytestmark = pytest.mark.texts("rules")

POD, GPU = "urn:pulumi:s::p::kubernetes:core/v1:Pod::train-a", "kai-fleet:gpu.values"
DEV = team("dev", "default", {})
POOLS = [
    *(
        refuses(f"{pool}", host(team("ml"), team("b", pool=pool)), "kai-fleet:teams.b.nodePool")
        for pool in ({}, {"zone": "a"}, {"kai-fleet/pool": "ml", "zone": "a"})
    ),
    refuses("pods of mode default", host(team("ml"), DEV), "kai-fleet:teams.dev.nodePool"),
    waits("unknown", host(team("a"), team("b", UNKNOWN)), "kai-fleet:teams.b.nodePool"),
]


ML_MODE = "kai-fleet:teams.ml.scheduler.mode"
KAI_ON_HOST = cluster(kai=(Kai(None),), teams=(team("ml"),))
ONE_MODE = [
    refuses("beside KAI", cluster(teams=(team("ml"), team("dev", "default"))), ML_MODE),
    refuses("beside host mode", host(team("ml"), team("web", "host")), ML_MODE),
    refuses("beside KAI without a version", KAI_ON_HOST, ML_MODE),
    waits("unknown", cluster(teams=(team("ml", UNKNOWN),)), "kai-fleet:teams.ml"),
]

AGAIN = host(team("a"), team("a", path="kai-fleet:teams.second"))
UNIQUE = [
    refuses("again", AGAIN, "kai-fleet:teams.second"),
    waits("unknown", host(team(UNKNOWN), team("a")), "kai-fleet:teams.Unknown.UNKNOWN"),
]

GRAFANA = ManagedObject("Release", "grafana", "kai-scheduler")
RESERVED = [
    *(
        refuses(name, cluster(workload(namespace=name)), POD)
        for name in ("kai-scheduler", "kai-resource-reservation", "gpu-operator", "kube-system")
    ),
    refuses("a release beside KAI's", cluster(objects=(GRAFANA,)), ""),
    refuses("KAI elsewhere", cluster(kai=(Kai("v0.9.3", namespace="gpu"),)), ""),
    waits("unknown", cluster(workload(namespace=UNKNOWN)), POD),
]


def plugin(sharing):
    return (ManagedObject("Release", "gpu", "gpu", path=GPU, sharing=sharing),)


def with_kai(sharing):
    return cluster(kai=(Kai("v0.9.3", sharing=sharing),), objects=plugin("MPS"))


TWO_KAIS = (team("ml", inside=ClusterModel(kai=(Kai("v0.9.3"),))), team("b"))
SHARERS = [
    refuses("time-slicing", cluster(objects=plugin("time-slicing")), GPU),
    refuses("a team's KAI", host(*TWO_KAIS, objects=plugin("MPS")), GPU),
    refuses("HAMi", with_kai("HamiCore"), GPU),
    waits("unknown config", cluster(objects=plugin(UNKNOWN)), GPU),
    waits("unknown KAI", with_kai(UNKNOWN), GPU),
]

CASES = {
    "team-node-pools": POOLS,
    "team-one-mode": ONE_MODE,
    "team-unique": UNIQUE,
    "namespace-reserved": RESERVED,
    "gpu-one-sharer": SHARERS,
}
PASSING = {
    "team-node-pools": [
        host(team("ml"), team("research"), team("dev", "default", {}, gpus=0)),
        host(team("a", pool={"pool": "x", "zone": "1"}), team("b", pool={"zone": "2"})),
        host(team("a", "default", {}), team("b", "default", {})),  # one scheduler sees both
    ],
    "team-one-mode": [
        host(team("a"), team("b"), team("c", "default")),
        cluster(teams=(team("a", "host"), team("c", "default"))),
    ],
    "team-unique": [host(team("a"), team("b"))],
    "namespace-reserved": [
        cluster(workload(), workload(namespace=None)),
        cluster(objects=(ManagedObject("Secret", "pull", "kai-scheduler"),)),
        cluster(objects=(ManagedObject("Release", "p", "kube-system"),)),
    ],
    "gpu-one-sharer": [
        cluster(objects=plugin("")),
        with_kai("Disabled"),
        host(objects=plugin("time-slicing")),
    ],
}


@pytest.mark.parametrize(("rule", "seen"), passing(PASSING))
def test_team_rule_passes(rule, seen):
    assert found(rule, seen) == []


@pytest.mark.parametrize(("rule", "case"), cases(CASES))
def test_team_rule_reports(rule, case, texts):
    case.reported_by(rule, texts)


def test_team_node_pools_names_each_overlapping_team_once():
    teams = [team(f"t{i}", pool={"pool": "same"}) for i in range(4)]
    named = [p.subject for p in found("team-node-pools", host(*teams))]
    assert named == ["team t1", "team t2", "team t3"]


def test_team_gang_warns_of_mode_host(texts):
    assert found("team-gang", host(team("a"), team("b", "default"))) == []
    (problem,) = found("team-gang", host(team("a", "host")))
    assert (problem.level, problem.path) == (Level.ADVISORY, "kai-fleet:teams.a.scheduler.mode")
    texts(problem)


SLICED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
UNKNOWN_REPLICAS = {"resources": [{"name": "nvidia.com/gpu", "replicas": UNKNOWN}]}
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
        ({"config": {"map": {"d": {"timeSlicing": UNKNOWN_REPLICAS}}}}, UNKNOWN),
        ({"config": {"map": {"d": "# timeSlicing\nresources: 1"}}}, ""),
        *(
            ({"config": {"map": {"d": unreadable, "e": SLICED}}}, "time-slicing")
            for unreadable in (
                "[",
                "2024-13-45",
                "!!int x",
                "!!int ''",
                "!!bool x",
                "!!timestamp x",
            )
        ),
        ({"devicePlugin": {"config": {"data": MPS}}}, "MPS"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_device_sharing_of_a_charts_values(values, sharing):
    assert device_sharing(values) == sharing


def test_team_mode_warns_of_autoscaled_nodes_from_inside(texts):
    (problem,) = found("team-mode", host(replace(team("ml"), autoscaled=True)))
    assert (problem.level, problem.path) == (Level.ADVISORY, "kai-fleet:teams.ml.autoscaled")
    texts(problem)


@pytest.mark.parametrize(
    ("mode", "autoscaled"), [("default", True), ("host", True), ("virtual", False)]
)
def test_team_mode_keeps_autoscaled_passes(mode, autoscaled):
    assert found("team-mode", host(replace(team("ml", mode), autoscaled=autoscaled))) == []


@pytest.mark.parametrize("on", [True, False])
def test_team_mode_kai_asks_in_vain_for_nodes_from_inside(on):
    own = Kai("v0.16.8", path="s", values={"global": {"clusterAutoscaling": on}})
    asks = replace(team("ml"), inside=ClusterModel("ml", kai=(own,)))
    warned = found("team-mode", host(asks))
    assert [each.path for each in warned] == ["s.values.global.clusterAutoscaling"] * on
    assert found("team-mode", cluster(kai=(own,), teams=(team("ml", "host"),))) == []


def test_gpu_one_sharer_a_config_of_others_is_undecided_where_kai_shares(texts):
    of_others = plugin(OF_OTHERS)
    (problem,) = found("gpu-one-sharer", cluster(objects=of_others))
    assert (problem.level, problem.path) == (Level.ADVISORY, GPU)
    texts(problem)
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


def test_gpu_one_sharer_in_a_plan_names_the_key_once():
    named = sharing_stack(
        "operator", devicePlugin={"config": {"name": "time-slicing-config-all", "default": "any"}}
    )
    (said,) = plan_settings(named).problems
    assert (said.check, said.path) == ("gpu-one-sharer", GPU)
    sliced = sharing_stack("device-plugin", config={"map": {"default": SLICED}})
    (refused,) = plan_settings(sliced).problems
    assert (refused.level, refused.path) == (Level.MANDATORY, GPU)
    one = sharing_stack("device-plugin", config={"map": {"default": SLICED.replace("4", "1")}})
    assert plan_settings(one).problems == ()
