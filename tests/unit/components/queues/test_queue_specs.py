"""A tree of QueueArgs as Queue objects: quotas that are left out, units, shards, limits."""

import pytest

from kai_fleet.queues.specs import labels_of, leaves, mistakes, named_specs


def shares(tree, part="quota", resource="gpu", **more):
    specs = dict(named_specs(tree, **more))
    return {name: spec["resources"][resource][part] for name, spec in specs.items()}


def gpu(quota, **more):
    return {"gpu": {"quota": quota, **more}}


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_cpu_and_memory_are_unlimited_unless_set(resource):
    tree = {"all": {"children": {"a": {}, "b": gpu(1)}}}
    assert shares(tree, resource=resource) == {"all": -1, "a": -1, "b": -1}


def test_amounts_are_in_the_units_of_kai():
    tree = {"a": {**gpu(0.5), "cpu": {"quota": 0.5}, "memory": {"quota": "64Gi", "limit": "1G"}}}
    assert shares(tree) == {"a": 0.5}
    assert shares(tree, resource="cpu") == {"a": 500}
    assert shares(tree, resource="memory") == {"a": 68719}
    assert shares(tree, "limit", "memory") == {"a": 1000}
    assert repr(shares({"a": gpu(4.0)})["a"]) == "4", "a plan reads 4, not 4.0"


@pytest.mark.parametrize("written", ["unlimited", -1, -1.0, "-1"])
def test_minus_one_is_unlimited(written):
    assert shares({"a": {"memory": {"quota": written}}}, resource="memory") == {"a": -1}


def test_a_limit_and_a_weight_that_are_left_out_let_a_queue_run():
    assert shares({"a": gpu(1)}, "limit") == {"a": -1}
    assert shares({"a": gpu(1)}, "overQuotaWeight") == {"a": 1}


def test_a_parent_has_the_sum_of_its_children():
    tree = {"all": {"children": {"a": gpu(3), "b": {"children": {"c": gpu(0.5)}}}}}
    assert shares(tree) == {"all": 3.5, "a": 3, "b": 0.5, "c": 0.5}
    tree = {"all": {"children": {"a": gpu(3), "b": gpu(-1)}}}
    assert shares(tree)["all"] == -1


def test_the_one_open_top_level_queue_has_the_teams_gpus():
    assert shares({"all": {"children": {"a": gpu(3)}}}, gpus=8) == {"all": 8, "a": 3}
    assert shares({"one": {}, "two": gpu(3)}, gpus=8) == {"one": 5, "two": 3}
    assert shares({"all": {"gpu": {"limit": 2}}}, gpus=8) == {"all": 2}


def test_several_open_top_level_queues_share_what_there_is():
    tree = {"one": {}, "two": {"children": {"a": gpu(2)}}}
    assert shares(tree, gpus=8) == {"one": 0, "two": 2, "a": 2}


def test_below_a_number_nothing_is_unlimited():
    tree = {"all": {"cpu": {"quota": 32}, "children": {"a": {}, "b": {"cpu": {"quota": 8}}}}}
    assert shares(tree, resource="cpu") == {"all": 32000, "a": 0, "b": 8000}


def test_a_limit_bounds_a_quota_that_nobody_wrote():
    assert shares({"a": {"cpu": {"limit": 16}}}, resource="cpu") == {"a": 16000}


def test_top_level_queues_are_limited_to_the_teams_gpus():
    tree = {"one": {**gpu(6), "children": {"a": gpu(6)}}, "two": gpu(1, limit=2), "three": gpu(10)}
    assert shares(tree, "limit", gpus=8) == {"one": 8, "a": -1, "two": 2, "three": 10}


def test_each_pool_has_its_own():
    tree = {"one": {"shard": "gold"}, "two": {"children": {"a": {}}}}
    assert shares(tree, gpus=8, pools={"gold": 2, "default": 6}) == {"one": 2, "two": 6, "a": 0}
    assert shares(tree, "limit", gpus=8, pools={"gold": 2, "default": 6})["one"] == 2


def test_the_rest_of_a_queue_is_as_kai_reads_it():
    queue = {
        "display_name": "Training",
        "priority": 50.0,
        "preempt_min_runtime": "4h",
        "reclaim_min_runtime": "1h",
    }
    specs = dict(named_specs({"top": {"children": {"a": queue}}}, parent="team-ml"))
    assert specs["top"]["parentQueue"] == "team-ml"
    own = {key: item for key, item in specs["a"].items() if key != "resources"}
    assert own == {
        "displayName": "Training",
        "parentQueue": "top",
        "priority": 50,
        "preemptMinRuntime": "4h",
        "reclaimMinRuntime": "1h",
    }


def test_parents_come_first_and_a_shard_is_on_all_below():
    tree = {"top": {"shard": "gold", "children": {"a": {}}}, "other": {"shard": "default"}}
    assert [*dict(named_specs(tree))] == ["top", "a", "other"]
    gold = {"kai.scheduler/node-pool": "gold"}
    assert labels_of(tree) == {"top": gold, "a": gold}
    assert leaves(tree) == ["a", "other"]


def test_what_is_no_tree_is_refused():
    (mistake,) = mistakes({"a": {"children": {"a": {}}}})
    assert mistake.startswith("queue a is there twice")
    with pytest.raises(ValueError, match="queue a: '8 GB' is no Kubernetes quantity"):
        named_specs({"a": {"memory": {"quota": "8 GB"}}})
