import pytest

from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, queue, refusal

RULE = "queue-tree"


def test_a_tree_passes():
    assert found(RULE, cluster()) == []


def test_an_absent_parent_is_refused_with_the_nearest_name():
    kept = (queue("default"), queue("other"), queue("test", "defualt"))
    problem = refusal(RULE, cluster(queues=kept))
    assert (problem.subject, problem.path) == ("queue test in host", "kai-fleet:queues.test.parent")
    assert "has the parent defualt, which is not declared in host" in problem.message
    assert "write default or other, or declare defualt" in problem.message


@pytest.mark.parametrize("parent", ["default-parent-queue", "department"])
def test_a_parent_of_another_program_is_an_open_question(parent):
    below = (queue("team-a", parent), queue("team-b", parent))
    for problem in found(RULE, cluster(queues=below, kai=())):
        assert problem.undecided
        assert f"existingQueues: [{parent}] in the pack's configuration" in problem.message
        assert f"declare {parent}" not in problem.message


def test_the_parent_of_kais_chart_is_there_or_not_where_the_chart_is_known():
    below = (queue("top"), queue("team-a", "default-parent-queue"))
    open_question(RULE, cluster(queues=below, kai=()))
    open_question(RULE, cluster(queues=below, version=None))
    open_question(RULE, cluster(queues=below, version=UNKNOWN))
    refusal(RULE, cluster(queues=below, version="v0.9.3"))


def test_beside_a_top_queue_an_absent_parent_is_a_slip_or_configured():
    slip = (queue("dept"), queue("team-a", "detp"))
    problem = refusal(RULE, cluster(queues=slip, kai=()))
    assert problem.message.endswith(
        "write dept, or list detp in existingQueues of the pack's configuration of queue-tree if"
        " another program makes it"
    )


def test_a_queue_is_not_its_own_parent():
    problem = refusal(RULE, cluster(queues=(queue("a", "a"),)))
    assert "is its own parent; leave the parent out" in problem.message


def test_a_cycle_is_refused_once_with_its_whole_ring():
    kept = (queue("b", "c"), queue("a", "b"), queue("c", "a"), queue("leaf", "a"))
    problem = refusal(RULE, cluster(queues=kept))
    assert "is below itself (a → b → c → a)" in problem.message
    assert "leave the parent of a, b or c out" in problem.message


def test_a_name_is_taken_once():
    problem = refusal(RULE, cluster(queues=(queue("a"), queue("a"))))
    assert "is declared twice" in problem.message
    assert "rename one of the two queues a" in problem.message


def test_unknown_values_are_told():
    assert "parent is known" in open_question(RULE, cluster(queues=(queue("a", UNKNOWN),))).message
    said = found(RULE, cluster(queues=(queue(UNKNOWN), queue("a", "somewhere"))))
    assert all(problem.undecided for problem in said)
    assert [p.message.split(";")[0] for p in said] == [
        "cannot decide until the name of the queue is known",
        "cannot decide until all queue names are known",
    ]
