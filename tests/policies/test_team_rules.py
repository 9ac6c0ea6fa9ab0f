"""The rules about teams, KAI's namespace and who shares GPUs, case by case."""

import pytest

from kai_fleet.finding import Level
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.adapters.from_resources import device_sharing
from kai_fleet_policies.model.cluster import Cluster, Kai, ManagedObject
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

SAME = "{kai-fleet/pool: research} and {kai-fleet/pool: ml}"
DEV = team("dev", "default", {})
POOLS = [
    *passes(
        host(team("ml"), team("research"), team("dev", "default", {}, gpus=0)),
        host(team("ml"), team("web", "default")),
        host(team("a", pool={"pool": "x", "zone": "1"}), team("b", pool={"zone": "2"})),
        host(team("a", "default", {}), team("b", "default", {})),  # one scheduler sees both
        host(team("only", pool={})),
        host(team("a", "default", {}), team("b", "default", UNKNOWN)),
    ),
    *(
        refuses(host(team("ml"), team("research", pool=pool)), SAME)
        for pool in (
            {},
            {"kai-fleet/pool": "ml"},
            {"zone": "a"},
            {"kai-fleet/pool": "ml", "zone": "a"},
        )
    ),
    refuses(
        host(team("ml"), DEV),
        "has no node pool and may share nodes with team ml, which has node pool {kai-fleet/pool:"
        " ml}: the KAI inside ml would hand out GPUs",
    ),
    refuses(host(team("ml"), DEV), "or gpus: 0 for dev"),
    refuses(host(team("a", "host", {}), team("ml")), "the KAI inside ml"),
    waits(host(team("a"), team("b", pool={"pool": UNKNOWN})), "node pool"),
    waits(host(team("a"), team("b", UNKNOWN)), "node pool"),
]

ONE_MODE = [
    *passes(
        host(team("a"), team("b"), team("c", "default")),
        cluster(teams=(team("a", "host"), team("c", "default"))),
        host(team("ml", UNKNOWN)),
    ),
    refuses(
        cluster(teams=(team("ml"), team("dev", "default"))),
        "beside KAI v0.9.3 on the host: each start of the host's KAI would delete this team's"
        " running pods; write mode host (or default) here, or take KAI off the host",
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
        cluster(
            objects=(
                ManagedObject("Secret", "pull", "kai-scheduler"),
                ManagedObject("Release", "plugin", "kube-system", "nvidia-device-plugin"),
            )
        ),
    ),
    *(
        refuses(
            cluster(workload(namespace=it)),
            f"runs in {it}, which is reserved for the platform; write a namespace of the team's",
        )
        for it in (
            *("kai-scheduler", "kai-resource-reservation", "kai-scale-adjust"),
            *("gpu-operator", "kube-system"),
        )
    ),
    refuses(
        cluster(objects=(ManagedObject("Release", "grafana", "kai-scheduler", "grafana"),)),
        "removing KAI deletes every Deployment; write a namespace of the team's own",
    ),
    refuses(cluster(kai=(Kai("v0.9.3", namespace="gpu"),)), "write namespace: kai-scheduler"),
    waits(cluster(workload(namespace=UNKNOWN)), "namespace"),
    waits(cluster(kai=(Kai("v0.9.3", namespace=UNKNOWN),)), "namespace"),
    waits(cluster(objects=(ManagedObject("Release", "x", UNKNOWN),)), "namespace"),
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
        "shares GPUs by time-slicing while the KAI of the host shares them too; remove the sharing"
        " section",
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


IN_KAI = ManagedObject("Release", "x", "kai-scheduler", "x", "urn:x")


@pytest.mark.parametrize(
    ("rule", "seen", "subject", "path"),
    [
        ("team-node-pools", POOLS[7].values[0], "team research", "teams.research.nodePool"),
        ("team-one-mode", cluster(teams=(team("ml"),)), "team ml", "teams.ml.scheduler.mode"),
        ("team-unique", UNIQUE[1].values[0], "vCluster a in host", "teams.second"),
        ("namespace-reserved", cluster(objects=(IN_KAI,)), "Release x in host", "urn:x"),
        ("gpu-one-sharer", with_kai("HamiCore"), "device plugin of host", "gpu.values"),
    ],
)
def test_a_finding_is_at_the_key_that_is_wrong(rule, seen, subject, path):
    problem = refusal(rule, seen)
    assert (problem.subject, problem.path.removeprefix("kai-fleet:")) == (subject, path)


def test_host_mode_costs_gangs():
    assert found("team-gang", host(team("a"), team("b", "default"))) == []
    (problem,) = found("team-gang", host(team("a", "host")))
    assert problem.level is Level.ADVISORY
    assert not problem.undecided
    assert "one by one, not as a gang; write mode virtual" in problem.message


SLICED = """
version: v1
sharing:
  timeSlicing:
    resources: [{name: nvidia.com/gpu, replicas: 4}]
"""
MPS = {"x": {"sharing": {"mps": {"resources": [1]}}}}


@pytest.mark.parametrize(
    ("values", "sharing"),
    [
        ({"config": {"map": {"default": SLICED}}}, "time-slicing"),
        ({"config": {"name": "somewhere"}}, ""),
        ({"mps": {"root": "/run/nvidia/mps"}}, ""),
        ({"devicePlugin": {"config": {"name": "c", "data": {"any": SLICED}}}}, "time-slicing"),
        ({"devicePlugin": {"config": {"data": MPS}}}, "MPS"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_the_sharing_of_a_device_plugin_chart_is_read_from_its_values(values, sharing):
    assert device_sharing(values) == sharing
