import pytest

from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, refusal, workload

RULE = "workload-scheduler"


def test_label_and_scheduler_together_pass():
    assert found(RULE, cluster(workload())) == []


def test_a_pod_that_has_nothing_to_do_with_kai_passes():
    assert found(RULE, cluster(workload(scheduler=None, labels={"app": "web"}))) == []


@pytest.mark.parametrize(
    ("scheduler", "says"),
    [(None, "no schedulerName"), ("default-scheduler", "schedulerName: default-scheduler")],
)
def test_the_label_alone_is_refused(scheduler, says):
    problem = refusal(RULE, cluster(workload(scheduler=scheduler)))
    assert f"has the label kai.scheduler/queue but {says}" in problem.message
    assert problem.message.endswith("write schedulerName: kai-scheduler")


def test_the_scheduler_alone_is_refused():
    problem = refusal(RULE, cluster(workload(labels={})))
    assert "no label kai.scheduler/queue; write the label with a leaf queue" in problem.message


def test_a_gpu_fraction_without_kai_is_refused():
    pod = workload(scheduler=None, labels={}, annotations={"gpu-fraction": "0.5"})
    assert (
        "has the annotation gpu-fraction but no schedulerName"
        in refusal(RULE, cluster(pod)).message
    )


def test_unknown_values_are_told():
    assert "schedulerName" in open_question(RULE, cluster(workload(scheduler=UNKNOWN))).message
    assert "labels" in open_question(RULE, cluster(workload(labels=UNKNOWN))).message
    pod = workload(scheduler=None, labels={}, annotations=UNKNOWN)
    assert "annotations" in open_question(RULE, cluster(pod)).message
