import pytest

from kai_fleet.fleet.pods import PodContainer
from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, refusal, shared, workload

RULE = "workload-known-keys"


@pytest.mark.parametrize(
    "key",
    [
        "gpu-fraction",
        "gpu-memory",
        "mps",
        "kai.scheduler/topology",
        "kai.scheduler/batch-min-member",
        "kai.scheduler/background",
        "runai/shared-gpu-configmap",
        "example.com/queue",
        "prometheus.io/scrape",
        "nvidia.com/gpu.memory",
        "nvidia.com/gpu",
        "nvidia.com/kai-scheduler-queue",
    ],
)
def test_keys_that_kai_reads_or_that_are_not_its_pass(key):
    assert found(RULE, cluster(workload(annotations={key: "1"}))) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("kai.scheduler/gpu-fraction", "annotation gpu-fraction"),
        ("kai.scheduler/gpu-memory", "annotation gpu-memory"),
        ("kai.scheduler/fraction", "annotation gpu-fraction"),
        ("runai/gpu-fraction", "annotation gpu-fraction"),
        ("runai/queue", "label kai.scheduler/queue"),
        ("kai.scheduler.nvidia.com/gpu-fraction", "annotation gpu-fraction"),
        ("kai.scheduler.nvidia.com/gpu-memory", "annotation gpu-memory"),
        ("kai.scheduler.nvidia.com/queue", "label kai.scheduler/queue"),
        ("kai.scheduler.nvidia.com/preemptibility", "annotation kai.scheduler/preemptibility"),
        ("nvidia.com/gpu-fraction", "annotation gpu-fraction"),
        ("gpu_fraction", "annotation gpu-fraction"),
        ("gpuFraction", "annotation gpu-fraction"),
        ("kai.scheduler/topolgy", "annotation kai.scheduler/topology"),
    ],
)
def test_look_alikes_are_refused_with_the_right_key(wrong, right):
    problem = refusal(RULE, cluster(workload(annotations={wrong: "0.5"})))
    assert f"has the annotation {wrong}, which no supported KAI version reads" in problem.message
    assert problem.message.endswith(f"write the {right}")


def test_the_old_queue_label_is_refused_on_pods_and_on_the_object():
    for place in ("labels", "owner_labels"):
        problem = refusal(RULE, cluster(workload(**{place: {"runai/queue": "test"}})))
        assert "write the label kai.scheduler/queue" in problem.message


def test_a_share_as_a_resource_is_refused_with_the_annotation():
    asked = (PodContainer("main", limits={"nvidia.com/gpu-fraction": "0.2"}),)
    problem = refusal(RULE, cluster(workload(containers=asked)))
    assert "asks for the resource nvidia.com/gpu-fraction in container main" in problem.message
    assert problem.message.endswith("write the annotation gpu-fraction")
    whole = (PodContainer("main", limits={"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "1"}),)
    assert found(RULE, cluster(workload(containers=whole))) == []


def test_a_key_of_kai_that_nothing_resembles_is_refused():
    problem = refusal(RULE, cluster(workload(annotations={"kai.scheduler/sparkle": "1"})))
    assert problem.message.endswith("remove it")


def test_the_right_key_in_the_wrong_place_is_refused():
    problem = refusal(RULE, cluster(workload(annotations={QUEUE_LABEL: "test"})))
    assert "KAI reads it as label: move it there" in problem.message
    problem = refusal(RULE, cluster(workload(labels={QUEUE_LABEL: "test", "gpu-fraction": "0.5"})))
    assert "KAI reads it as annotation" in problem.message


@pytest.mark.parametrize(("value", "text"), [(0.5, '"0.5"'), (True, '"true"'), (2000.0, '"2000"')])
def test_values_that_are_not_strings_are_refused_with_quotes(value, text):
    problem = refusal(RULE, cluster(shared(gpu_memory=value)))
    assert problem.message.endswith(f"not a string; write gpu-memory: {text}")


def test_pods_of_the_commercial_product_keep_their_keys():
    pod = workload(scheduler="runai-scheduler", labels={"runai/queue": "a"})
    assert found(RULE, cluster(pod)) == []


def test_unknown_maps_are_told_and_unknown_values_need_no_word():
    assert "annotations" in open_question(RULE, cluster(workload(annotations=UNKNOWN))).message
    assert found(RULE, cluster(shared(gpu_fraction=UNKNOWN))) == []
