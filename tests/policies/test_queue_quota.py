from dataclasses import replace

import pytest

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.queues import QueueShare
from kai_fleet.values import UNKNOWN
from tests.policies.samples import FREE, cluster, found, gpu_queue, open_question, queue, refusal

RULE = "queue-quota"


def of(*queues, **more):
    return cluster(queues=queues, **more)


@pytest.mark.parametrize(
    "queues",
    [
        (gpu_queue("p", None, 4), gpu_queue("a", "p", 2), gpu_queue("b", "p", 2)),
        (gpu_queue("p", None, -1), gpu_queue("a", "p", -1), gpu_queue("b", "p", 100)),
        (gpu_queue("p", None, 4, 4), gpu_queue("a", "p", 4, 4)),
        (gpu_queue("p", None, 4, 4), gpu_queue("a", "p", 4, -1)),  # the parent's limit holds
        (gpu_queue("p", None, 0.3), gpu_queue("a", "p", 0.1), gpu_queue("b", "p", 0.2)),
        (gpu_queue("p", None, 0, 0),),
    ],
)
def test_trees_that_add_up_pass(queues):
    assert found(RULE, of(*queues)) == []


def test_children_above_their_parent_are_refused():
    problem = refusal(
        RULE, of(gpu_queue("p", None, 4), gpu_queue("a", "p", 3), gpu_queue("b", "p", 2))
    )
    assert (problem.subject, problem.path) == ("queue p in host", "kai-fleet:queues.p.gpu.quota")
    assert "gpu quotas of a, b add up to 5, above its quota of 4" in problem.message
    assert "lower them to 4 together, or raise that to 5" in problem.message


def test_an_unlimited_child_of_a_limited_parent_is_refused():
    problem = refusal(RULE, of(gpu_queue("p", None, 4), gpu_queue("a", "p", -1)))
    assert "the gpu quota of a is unlimited, above its quota of 4" in problem.message


def test_each_resource_counts_and_is_written_as_its_author_would():
    def tree(path: str):
        shares = FREE | {"cpu": QueueShare(2000), "memory": QueueShare(64_000)}
        more = FREE | {"cpu": QueueShare(2500), "memory": QueueShare(64_500)}
        return of(queue("p", None, shares, path=path), queue("a", "p", more))

    cpu, memory = found(RULE, tree("kai-fleet:queues.p"))
    assert "add up to 2500m, above its quota of 2;" in cpu.message
    assert "add up to 64500M, above its quota of 64G;" in memory.message
    cpu, memory = found(RULE, tree("urn:pulumi:s::p::kubernetes:scheduling.run.ai/v2:Queue::p"))
    assert "add up to 2500 (millicores), above its quota of 2000 (millicores)" in cpu.message
    assert "64500 (MB)" in memory.message


@pytest.mark.parametrize(
    ("quota", "limit", "advice"),
    [
        (4, 2, "raise the limit to 4 or lower the quota to 2"),
        (-1, 2, "write quota 2, or limit unlimited"),
        (1, 0, "raise the limit to 1 or lower the quota to 0"),
    ],
)
def test_a_limit_below_the_quota_is_refused(quota, limit, advice):
    problem = refusal(RULE, of(gpu_queue("a", None, quota, limit)))
    assert problem.path == "kai-fleet:queues.a.gpu.limit"
    assert problem.message.endswith(advice)


def test_a_limit_above_the_parents_is_refused_also_across_an_unlimited_queue():
    problem = refusal(RULE, of(gpu_queue("p", None, 1, 4), gpu_queue("a", "p", 1, 8)))
    assert (
        "has gpu limit 8, above the limit 4 of queue p over it; write at most 4" in problem.message
    )
    queues = (gpu_queue("top", None, 2, 4), gpu_queue("p", "top", 1, -1), gpu_queue("a", "p", 1, 8))
    assert "above the limit 4 of queue top" in refusal(RULE, of(*queues)).message


def test_a_limit_left_out_of_a_declared_queue_is_refused():
    """KAI reads it as 0."""
    problem = refusal(RULE, of(queue("a", None, FREE | {"cpu": QueueShare(500, None)})))
    assert "leaves its cpu limit out" in problem.message
    assert "write limit: -1 for unlimited" in problem.message
    problem = refusal(RULE, of(queue("a", None, {"cpu": FREE["cpu"], "gpu": FREE["gpu"]})))
    assert "has no share of memory" in problem.message


def test_a_queue_for_cpu_pods_may_leave_gpus_out():
    assert found(RULE, of(queue("a", None, {r: FREE[r] for r in ("cpu", "memory")}))) == []


@pytest.mark.parametrize("share", [QueueShare(-2), QueueShare(0, -5), QueueShare(0, -1, -1)])
def test_negative_amounts_are_refused(share):
    said = found(RULE, of(queue("a", None, FREE | {"gpu": share})))
    assert "write 0 or more" in said[0].message


def inner(*queues, gpus):
    return Cluster("ml", path="kai-fleet:teams.ml", queues=queues, gpus=gpus)


def test_a_teams_queues_stay_within_its_gpus():
    assert found(RULE, inner(gpu_queue("a", None, 2, 4), gpu_queue("b", None, 2, 4), gpus=4)) == []
    problem = refusal(RULE, inner(gpu_queue("a", None, 3, 4), gpu_queue("b", None, 2, 4), gpus=4))
    assert (problem.subject, problem.path) == ("queues of ml", "kai-fleet:teams.ml.queues")
    assert "add up to 5, above the team's GPUs of 4" in problem.message
    assert "raise the team's gpus to 5" in problem.message


@pytest.mark.parametrize("quota", [3, -1])
def test_a_quota_above_the_teams_gpus_is_told_once(quota):
    """Its limit of 2 was filled in from the team's GPUs: nobody could find it in the file."""
    problem = refusal(RULE, inner(gpu_queue("train", None, quota, 2), gpus=2))
    assert problem.path == "kai-fleet:teams.ml.queues"
    assert "above the team's GPUs of 2" in problem.message


def test_children_above_the_teams_gpus_are_told_once():
    """Their queue's quota and limit are filled in, and are in nobody's file."""
    filled = inner(gpu_queue("default", None, 9, 9), gpu_queue("a", "default", 9), gpus=8)
    assert "add up to 9" in refusal(RULE, filled).message


@pytest.mark.parametrize("limit", [8, -1])
def test_a_teams_top_queue_has_a_limit_of_its_gpus(limit):
    problem = refusal(RULE, inner(gpu_queue("a", None, 2, limit), gpus=4))
    assert "but the team has 4 GPUs" in problem.message
    assert problem.message.endswith("write limit 4 or less")


def test_unknown_amounts_are_told():
    for share in (QueueShare(UNKNOWN), QueueShare(0, UNKNOWN), QueueShare(0, -1, UNKNOWN)):
        kept = queue("a", None, FREE | {"gpu": share})
        assert "is known" in open_question(RULE, of(kept)).message
    assert "resources" in open_question(RULE, of(queue("a", None, UNKNOWN))).message
    said = found(RULE, of(gpu_queue("p", None, 4), gpu_queue("a", "p", UNKNOWN)))
    assert all(p.undecided for p in said)
    assert any("quotas of its children" in p.message for p in said)
    assert "number of GPUs" in open_question(RULE, inner(gpus=UNKNOWN)).message


def test_a_known_excess_is_refused_beside_an_unknown_amount():
    queues = (gpu_queue("p", None, 4), gpu_queue("a", "p", 5), gpu_queue("b", "p", UNKNOWN))
    assert any("add up to 5" in p.message and not p.undecided for p in found(RULE, of(*queues)))


def test_a_second_queue_of_one_name_does_not_count_its_children_twice():
    twice = (gpu_queue("p", None, 4), replace(gpu_queue("p", None, 4), path="x"))
    assert len(found(RULE, of(*twice, gpu_queue("a", "p", 5)))) == 1
