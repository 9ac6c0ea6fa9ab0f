"""What components are given for a stack file."""

import typing
from typing import Any

import pytest

from kai_fleet.gpu_stack import GpuStackArgs
from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs
from kai_fleet.queue_tree import QueueTreeArgs
from kai_fleet.queues.specs import named_specs
from kai_fleet.team import TeamArgs
from kai_fleet_stack.arguments import Arguments
from tests.unit.components.component_samples import fields
from tests.unit.stack.stack_arguments import settings_of

PASSWORD, DATABASE = "s3cret", "postgres://u:t0psecret@db/ml"
STACK: dict[str, Any] = {
    "cluster": {"name": "lab", "context": "lab"},
    "gpu": {"provider": "operator", "version": "v25.3.0", "systemPriorities": True},
    "kai": {
        "version": "v0.16.8",
        "fairshare": {"window": "24h", "halfLife": "12h"},
        "shards": {"gold": {"placement": {"gpu": "spread"}, "queueDepth": {"allocate": 5}}},
        "topologies": {"racks": ["cloud.example/rack"]},
    },
    "queues": {
        "top": {"cpu": 4, "memory": "64Gi", "children": {"a": {"gpu": "unlimited"}, "b": {}}}
    },
    "tolerations": [{"key": "gpu", "effect": "NoSchedule"}],
    "registries": {"mirror.example.com": {"username": "u", "password": PASSWORD}},
    "monitoring": {},
    "isolation": {"devices": {"rdma/hca": 2}, "bounds": {"cpu": 200}},
    "vcluster": {
        "nodePool": {"pool": "control"},
        "access": {"type": "Ingress", "class": "nginx", "host": "ml.example.com"},
        "oidc": {"issuer": "https://id.example.com", "clientId": "k", "scopes": ["email"]},
    },
    "teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "ml"},
            "pools": {"gold": 4, "default": {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 3}},
            "queues": {
                "one": {"shard": "gold", "displayName": "One", "gpu": {"quota": 1, "weight": 2}},
                "two": {"shard": "default", "children": {"t": {"cpu": "500m"}}},
            },
            "registries": {"own.example.com": {"username": "u", "password": PASSWORD}},
            "vcluster": {
                "groups": {"ml": "edit"},
                "resources": {"limits": {"memory": "8Gi"}},
                "store": {"type": "external", "dataSource": DATABASE},
                "licensed": True,
            },
        },
        "research": {
            "scheduler": {"mode": "host"},
            "queue": "a",
            "gpus": {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 4},
            "vcluster": {"store": {"type": "etcd", "replicas": 3}},
        },
        "dev": {"scheduler": {"mode": "default"}},
    },
    "teamStacks": {"dev-own": {"gpus": 1, "nodePool": {"pool": "own"}}},
}


@pytest.fixture(scope="module")
def arguments():
    return Arguments(settings_of(STACK), {"context": "lab"})


def unknown(kind: Any, value: Any, path: str) -> list[str]:
    """The keys of arguments that their type does not have."""
    inner = typing.get_args(kind)
    if typing.is_typeddict(kind):
        hints = fields(kind)
        lost = [f"{path}.{key}" for key in value if key not in hints]
        below = ((hints[key], item, f"{path}.{key}") for key, item in value.items() if key in hints)
        return [*lost, *(name for each in below for name in unknown(*each))]
    if isinstance(value, dict) and typing.get_origin(kind) is dict:
        return [
            name for key, item in value.items() for name in unknown(inner[1], item, f"{path}.{key}")
        ]
    if isinstance(value, list) and typing.get_origin(kind) is list:
        return [name for item in value for name in unknown(inner[0], item, path)]
    return []


def test_every_key_is_a_field_of_its_arguments(arguments):
    every = {
        "gpu_stack": (GpuStackArgs, arguments.gpu_stack()),
        "host_kai": (KaiSchedulerArgs, arguments.host_kai()),
        "host_queues": (QueueTreeArgs, arguments.host_queues()),
        "grant": (TeamNamespaceArgs, arguments.namespace("dev-own")),
        **{name: (TeamArgs, arguments.team(name)) for name in STACK["teams"]},
    }
    assert [key for name, (kind, args) in every.items() for key in unknown(kind, args, name)] == []


def test_a_queue_of_teams_has_no_more_gpus_than_they(arguments):
    specs = dict(named_specs(arguments.host_queues()["queues"]))
    gpus = {name: spec["resources"]["gpu"] for name, spec in specs.items()}
    assert (gpus["a"]["quota"], gpus["a"]["limit"]) == (6, 6)  # KAI counts each slice of 1g
    assert (gpus["top"]["quota"], gpus["b"]["quota"], gpus["b"]["limit"]) == (-1, 0, -1)


def test_the_address_of_a_database_is_in_no_arguments_of_the_namespace(arguments):
    args = arguments.team("ml")
    assert args["vcluster"]["store"]["data_source"] == DATABASE
    assert DATABASE not in repr(args["namespace"])


def test_a_team_without_nodes_of_its_own_keeps_off_those_of_others(arguments):
    args = arguments.namespace("dev")
    assert args["foreign_pools"] == [{"pool": "control"}, {"pool": "ml"}, {"pool": "own"}]
    assert args["foreign_queues"] == ["dev-own"]
    assert arguments.namespace("ml")["foreign_pools"] == []


@pytest.mark.parametrize(
    ("team", "scheduler", "parts"),
    [
        ("ml", "inside", {"namespace", "vcluster", "kai", "queues", "guard"}),
        ("research", "host", {"namespace", "vcluster"}),
        ("dev", "none", {"namespace", "vcluster"}),
    ],
)
def test_the_mode_of_a_team_decides_about_its_parts(arguments, team, scheduler, parts):
    args = arguments.team(team)
    assert args["namespace"]["scheduler"] == scheduler
    assert args.keys() == parts
