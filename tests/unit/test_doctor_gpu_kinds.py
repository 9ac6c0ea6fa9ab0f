"""What nodes have of each kind of GPU, against what a team is granted."""

import pytest
from kai_fleet_cli.waiting.finding import meaning

from tests.unit.doctor_samples import Lab, pod

SLICE = "nvidia.com/mig-1g.10gb"
SUBJECT = "node pool kai-fleet/pool=ml of team ml"


def lab(gpus, allocatable, strategy="mixed", queues=None):
    made = Lab()
    ml = made.settings["teams"]["ml"]
    ml |= {"gpus": gpus, "queues": queues or {"train": {}, "serve": {}}}
    for place in ("host", "ml"):
        node = made.named("nodes", "ml-0", place)
        node["status"]["allocatable"] = {"cpu": "8", **allocatable}
        node["metadata"]["labels"]["nvidia.com/mig.strategy"] = strategy
    hard = made.named("resourcequotas", "gpus", "host")["spec"]["hard"]
    whole = gpus.get("nvidia.com/gpu", 0)
    hard |= {"requests.nvidia.com/gpu": str(whole), f"requests.{SLICE}": str(gpus.get(SLICE, 0))}
    return made


def said(made, check):
    return [it for it in made.ill() if it.check == check]


def test_slices_that_are_there_are_well():
    made = lab({SLICE: 14}, {SLICE: "14"})
    assert said(made, "nodes") + said(made, "gpu-quota") == []


def test_fewer_slices_than_granted_are_told_by_kind():
    (found,) = said(lab({SLICE: 14}, {SLICE: "7"}), "nodes")
    assert found.subject == SUBJECT
    assert found.cause == f"its Ready nodes have 7 {SLICE}, and the team is to have 14"


def test_slices_that_are_advertised_as_whole_gpus_are_told():
    (found,) = said(lab({SLICE: 14}, {"nvidia.com/gpu": "14"}, "single"), "nodes")
    assert (
        "nvidia.com/mig.strategy=single, 14 slices are advertised as nvidia.com/gpu" in found.cause
    )
    assert found.fix.startswith("write nvidia.com/gpu: 14 in its place at kai-fleet:teams.ml.gpus")


def test_kai_places_no_whole_gpu_on_a_node_with_slices():
    there = {"nvidia.com/gpu": "4", SLICE: "28"}
    (found,) = said(lab({"nvidia.com/gpu": 4, SLICE: 28}, there), "nodes")
    assert "its Ready nodes have 0 GPUs for KAI" in found.cause
    assert "(ml-0) it places no whole GPU" in found.cause


@pytest.mark.parametrize(
    ("hard", "cause"),
    [
        ("2", f"it lets the team have 2 {SLICE}, and 14 are declared"),
        (None, f"bound requests.{SLICE}"),
    ],
)
def test_the_quota_of_each_kind_is_looked_at(hard, cause):
    made = lab({SLICE: 14}, {SLICE: "14"})
    bounds = made.named("resourcequotas", "gpus", "host")["spec"]["hard"]
    bounds.pop(f"requests.{SLICE}")
    bounds |= {f"requests.{SLICE}": hard} if hard else {}
    (found,) = [it for it in made.ill() if it.subject.startswith("ResourceQuota gpus")]
    assert (found.check, cause in found.cause) == ("gpu-quota", True)


@pytest.mark.parametrize(
    ("count", "cause"),
    [
        ("15", f"it asks for 15 {SLICE}, and its team may hold at most 14"),
        ("8", f"it asks for 8 {SLICE}, and no Ready node has more than 7"),
    ],
)
def test_a_pod_that_asks_for_too_many_slices_is_told(count, cause):
    queues = {"train": {"gpu": {"quota": 14, "limit": 100}}, "serve": {}}
    made = lab({SLICE: 14}, {SLICE: "7"}, queues=queues)
    for queue in made.ml["queues"]:
        queue["spec"]["resources"]["gpu"] = {"quota": 14, "limit": -1}
    made.ml["pods"].append(pod("w", limits={SLICE: count}))
    assert any(cause in it.cause for it in said(made, "pending")), made.ill()


def pools(labels, there="4"):
    made = Lab()
    ml = made.settings["teams"]["ml"]
    del ml["gpus"]
    ml |= {"pools": {"a100": 4}, "queues": {"train": {"shard": "a100"}}}
    for place in ("host", "ml"):
        node = made.named("nodes", "ml-0", place)
        node["metadata"]["labels"] |= labels
        node["status"]["allocatable"]["nvidia.com/gpu"] = there
    return made


@pytest.mark.parametrize(("there", "well"), [("4", True), ("3", False)])
def test_each_pool_is_looked_at_by_itself(there, well):
    found = said(pools({"kai.scheduler/node-pool": "a100"}, there), "nodes")
    assert (found == []) == well
    for it in found:
        assert it.subject == "pool a100 of team ml"
        assert it.fix == "add nodes to the pool, or lower kai-fleet:teams.ml.pools.a100"


def test_a_pod_that_its_pool_is_too_small_for_is_told_where_to_raise_it():
    made = pools({"kai.scheduler/node-pool": "a100"}, "8")
    queue = {"quota": 4, "limit": 4, "overQuotaWeight": 1}
    (train,) = [it for it in made.ml["queues"] if it["metadata"]["name"] == "train"]
    train["spec"] = {"resources": {"gpu": queue}}
    shard = {"kai.scheduler/node-pool": "a100"}
    made.ml["pods"].append(pod("w", limits={"nvidia.com/gpu": "6"}, labels=shard))
    fixes = [it.fix for it in said(made, "pending")]
    assert fixes == ["ask for at most 4, or raise kai-fleet:teams.ml.pools.a100"]


@pytest.mark.parametrize("labels", [{}, {"kai.scheduler/node-pool": "a10"}])
def test_nodes_on_none_of_the_pools_are_told(labels):
    (found,) = said(pools(labels), "nodes")
    assert found.cause == "ml-0 is on none of its pools (a100): none of its queues gets GPUs there"
    assert "`kubectl label node ml-0 kai.scheduler/node-pool=a100 --overwrite`" in found.fix


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1 non MIG jobs cant run on a node with MigStrategy='mixed'.", "mig-mixed"),
        ("2 only whole gpu jobs can run on a node with MigStrategy='single'.", "mig-single"),
        ("3 MIG job cannot be scheduled on non-MIG node.", "mig-none"),
        (f"1 node(s) didn't have enough of mig profile: {SLICE}.", "no-room"),
        (
            "1 node(s) didn't have enough resources: GPUs. \n1 non MIG jobs cant run on a node with"
            " MigStrategy='mixed'.",
            "no-room",
        ),
    ],
)
def test_what_kai_says_of_slices_is_known(text, name):
    """Texts of node_info.go and pod_errors.go, as KAI counts the nodes."""
    assert meaning(f"Unable to schedule pod: {text}").name == name
