"""Quotas that a stack file leaves out: what the Queue objects get."""

from pathlib import Path

import pytest

from kai_fleet.fleet.declared import clusters_of
from kai_fleet.settings import load
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import path_of

IN_FULL = Path(__file__).parent / "golden" / "prod-in-full.yaml"
CLUSTER = {"name": "prod", "context": "prod"}


def quotas(tree, gpus=None, resource="gpu"):
    """Each queue's quota; of a team's tree where there are `gpus`, else of the host's."""
    raw = {"cluster": CLUSTER}
    if gpus is None:
        loaded = load({**raw, "kai": {"version": "v0.16.8"}, "queues": tree})
    else:
        team = {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "a"},
            "gpus": gpus,
            "queues": tree,
        }
        loaded = load({**raw, "teams": {"ml": team}})
    assert loaded.mistakes == ()
    specs = clusters_of(loaded.settings)[0 if gpus is None else 1].queue_specs
    return {name: spec["resources"][resource]["quota"] for name, spec in specs.items()}


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_cpu_and_memory_are_unlimited_unless_set(resource):
    tree = {"all": {"children": {"a": {}, "b": {"gpu": 1}}}}
    assert quotas(tree, resource=resource) == {"all": -1, "a": -1, "b": -1}


def test_a_number_alone_is_a_quota():
    tree = {"a": {"gpu": 12, "cpu": "500m", "memory": "1G"}}
    assert quotas(tree) == {"a": 12}
    assert quotas(tree, resource="cpu") == {"a": 500}
    assert quotas(tree, resource="memory") == {"a": 1000}


@pytest.mark.parametrize("written", ["unlimited", -1, {"quota": -1}, {"quota": "-1"}])
def test_minus_one_is_unlimited(written):
    assert quotas({"a": {"gpu": written}}) == {"a": -1}


def test_a_parent_has_the_sum_of_its_children():
    tree = {"all": {"children": {"a": {"gpu": 3}, "b": {"children": {"c": {"gpu": 0.5}}}}}}
    assert quotas(tree) == {"all": 3.5, "a": 3, "b": 0.5, "c": 0.5}
    tree = {"all": {"children": {"a": {"gpu": 3}, "b": {"gpu": "unlimited"}}}}
    assert quotas(tree)["all"] == -1


def test_a_leaf_without_gpu_is_guaranteed_none():
    assert quotas({"all": {"gpu": 4, "children": {"a": {}}}}) == {"all": 4, "a": 0}


def test_a_teams_one_open_top_level_queue_has_the_teams_gpus():
    assert quotas({"all": {"children": {"a": {"gpu": 3}}}}, gpus=8) == {"all": 8, "a": 3}
    assert quotas({"one": {}, "two": {"gpu": 3}}, gpus=8) == {"one": 5, "two": 3}
    assert quotas({"all": {"gpu": {"limit": 2}}}, gpus=8) == {"all": 2}


def test_several_open_top_level_queues_share_what_there_is():
    tree = {"one": {}, "two": {"children": {"a": {"gpu": 2}}}}
    assert quotas(tree, gpus=8) == {"one": 0, "two": 2, "a": 2}


def test_below_a_number_nothing_is_unlimited():
    tree = {"all": {"cpu": {"quota": 32}, "children": {"a": {}, "b": {"cpu": 8}}}}
    assert quotas(tree, resource="cpu") == {"all": 32000, "a": 0, "b": 8000}


def test_a_limit_bounds_a_quota_that_nobody_wrote():
    assert quotas({"a": {"cpu": {"limit": 16}}}, resource="cpu") == {"a": 16000}


def test_the_file_of_production_is_short_and_plans_what_it_would_in_full():
    lines = path_of("prod").read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.strip().startswith("#")]) <= 45
    short, whole = plan("prod"), plan("prod", IN_FULL)
    assert short.resources
    assert short.record() == whole.record()


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"queues": {"a": {"gpu": 1}}}, "kai-fleet:queues are there"),
        (
            {"teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "a"}}},
            "team ml is in mode host",
        ),
    ],
)
def test_host_queues_without_a_kai_on_the_host_are_refused(raw, why):
    (mistake,) = load({"cluster": CLUSTER, **raw}).mistakes
    assert mistake.path == "kai-fleet:kai"
    assert why in mistake.message and "write {version: v0.16.9}" in mistake.message
