from dataclasses import replace

from kai_fleet.fleet.cluster import Cluster, Kai
from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet.values import UNKNOWN
from tests.policies.samples import (
    cluster,
    found,
    host,
    open_question,
    queue,
    refusal,
    team,
    workload,
)

RULE = "workload-leaf-queue"


def names(queue_name: object):
    return workload(labels={QUEUE_LABEL: queue_name})


def test_a_pod_in_a_leaf_queue_passes():
    assert found(RULE, cluster(workload())) == []


def test_a_pod_of_the_default_scheduler_needs_no_queue():
    assert found(RULE, cluster(workload(scheduler=None, labels={}))) == []


def test_no_queue_is_refused_with_the_label_to_write():
    problem = refusal(RULE, cluster(workload(labels={})))
    assert problem.subject == "Pod train-a in namespace team-a of host"
    assert problem.path.endswith("Pod::train-a")
    assert "names no queue" in problem.message
    assert "write the label kai.scheduler/queue: test" in problem.message


def test_an_absent_queue_is_refused_with_the_nearest_name_first():
    problem = refusal(
        RULE, cluster(names("tset"), queues=(queue("a"), queue("zzz"), queue("test")))
    )
    assert "names queue tset, which is not declared in host" in problem.message
    assert problem.message.endswith("write test, a or zzz")


def test_a_parent_is_refused_with_its_leaves():
    problem = refusal(RULE, cluster(names("default")))
    assert "names queue default, which has children" in problem.message
    assert problem.message.endswith("write test")


def test_the_label_of_a_workload_wins_over_its_pods_as_in_kai():
    good = workload(labels={}, owner_labels={QUEUE_LABEL: "test"})
    bad = workload(owner_labels={QUEUE_LABEL: "default"})
    assert found(RULE, cluster(good)) == []
    assert "has children" in refusal(RULE, cluster(bad)).message


def test_host_mode_pods_are_judged_by_the_hosts_queues_and_their_own_teams():
    above = cluster(queues=(queue("dep"), queue("ml", "dep"), queue("web", "dep")))
    inner = Cluster("ml", scheduled_by=above, team_queue="ml")
    assert found(RULE, replace(inner, workloads=(names("ml"),))) == []
    problem = refusal(RULE, replace(inner, workloads=(names("web"),)))
    assert "the queue of team ml is ml; write kai.scheduler/queue: ml" in problem.message


def test_a_host_mode_teams_own_queue_must_be_a_leaf():
    above = cluster(teams=(team("ml", "host", queue="default"),))
    problem = refusal(RULE, above)
    assert (problem.subject, problem.path) == ("team ml", "kai-fleet:teams.ml.queue")
    assert "which has children" in problem.message


def test_unknown_values_are_told():
    assert "its label" in open_question(RULE, cluster(names(UNKNOWN))).message
    assert "its label" in open_question(RULE, cluster(workload(labels=UNKNOWN))).message
    undetermined = cluster(workload(labels={}, scheduler=UNKNOWN))
    assert "its schedulerName is known" in open_question(RULE, undetermined).message
    unnamed = cluster(names("other"), queues=(queue(UNKNOWN), queue("default")))
    assert "queue names of host are known" in open_question(RULE, unnamed).message
    open_parent = cluster(workload(), queues=(queue("test"), queue("x", UNKNOWN)))
    assert "test may have children" in open_question(RULE, open_parent).message


def test_a_known_mistake_is_refused_beside_unknown_values():
    mixed = cluster(
        names("default"), queues=(queue("default"), queue("t", "default"), queue(UNKNOWN))
    )
    assert "has children" in refusal(RULE, mixed).message


def test_queues_of_another_program_are_one_open_question():
    problem = open_question(RULE, cluster(workload("a"), workload("b"), queues=()))
    assert "2 workload(s) name queues such as test" in problem.message


def test_a_team_without_a_known_queue_is_no_mistake():
    assert found(RULE, host(team("ml", "host"))) == []


def test_under_a_guard_the_pods_themselves_name_their_queue():
    owned = workload(kind="Job", labels={}, owner_labels={QUEUE_LABEL: "test"})
    assert found(RULE, cluster(owned)) == []
    problem = refusal(RULE, cluster(owned, guarded=True))
    assert "names queue test on the Job only" in problem.message
    assert "write kai.scheduler/queue: test in the labels of the pod template" in problem.message
    assert found(RULE, cluster(workload(owner_labels={QUEUE_LABEL: "test"}), guarded=True)) == []


def test_in_host_mode_the_hosts_kai_sees_pods_without_their_owners():
    above = cluster(queues=(queue("dep"), queue("ml", "dep")))
    inner = Cluster("ml", scheduled_by=above)
    owned = workload(kind="Job", labels={}, owner_labels={QUEUE_LABEL: "ml"})
    problem = refusal(RULE, replace(inner, workloads=(owned,)))
    assert "the KAI of host sees only the pods, without their owners" in problem.message


def test_pods_in_a_pod_group_of_their_own_need_no_queue_from_v0_16_on():
    grouped = workload(labels={}, annotations={"pod-group-name": "batch"})
    for version in ("v0.16.8", "v0.17.0", "v0.18.0"):
        assert found(RULE, cluster(grouped, kai=(Kai(version),))) == []
    problem = refusal(RULE, cluster(grouped, kai=(Kai("v0.14.7"),)))
    assert "names no queue" in problem.message
    above = replace(host(team("ml", "host")), kai=(Kai("v0.16.8"),))
    inside = Cluster("ml", scheduled_by=above, workloads=(grouped,))
    assert "names no queue" in refusal(RULE, inside).message
    wrong = workload(labels={QUEUE_LABEL: "nowhere"}, annotations={"pod-group-name": "batch"})
    assert "nowhere" in refusal(RULE, cluster(wrong, kai=(Kai("v0.16.8"),))).message
