"""What keeps pods waiting: limits of queues, messages, and objects that create pods."""

import pytest

from kai_usage.cluster_usage import count
from kai_usage.creators import lacks_pods
from kai_usage.limits import exceeded_limits
from kai_usage.messages import row_of_message
from kai_usage.waiting import over_limit
from tests.unit.usage.usage_samples import answers, pod, queue

GPU = "nvidia.com/gpu"


def exceeded(item, *running, resources=("gpu", "cpu", "memory")):
    """The limits that a pod would exceed, as (queue, resource, alone, the least limit)."""
    tree = [queue("top", gpu=(8, 8)), queue("train", "top", gpu=(4, 4), memory=(64000, 64000))]
    usage = count(answers(queues=tree, pods=[item, *running]))
    found = exceeded_limits(usage.pods[0], usage.queues, resources)
    return [(one.queue.name, one.resource, one.alone, one.needed) for one in found]


def test_exceeded_limits_names_first_what_the_pod_exceeds_alone():
    held = pod("held", node="ml-0", asks={GPU: "3"})
    assert exceeded(pod("w", asks={GPU: "1"}), held) == []
    assert exceeded(pod("w", asks={GPU: "2"}), held) == [("train", "gpu", False, 5)]
    assert exceeded(pod("w", asks={GPU: "9"}), held) == [
        ("train", "gpu", True, 9),
        ("top", "gpu", True, 9),
    ]
    assert exceeded(pod("w", asks={GPU: "6"}), held) == [
        ("train", "gpu", True, 6),
        ("top", "gpu", False, 9),
    ]


def test_exceeded_limits_counts_the_resources_that_are_asked_for():
    large = pod("w", asks={"memory": "65G"})
    assert exceeded(large) == [("train", "memory", True, 65000)]
    assert exceeded(large, resources=["gpu"]) == []


def test_a_limit_is_told_with_all_digits_of_fractions():
    """With two digits 0.334 of 1, where 0.67 is held, would seem to fit."""
    tree = [queue("train", gpu=(1, 1))]
    held = pod("held", node="ml-0", gpu_fraction="0.67")
    waits = pod("w", gpu_fraction="0.334")
    usage = count(answers(queues=tree, pods=[waits, held]))
    (over,) = exceeded_limits(usage.pods[0], usage.queues)
    assert over_limit(over, "have it raised").cause == (
        "it asks for 0.334 GPUs, and queue train holds 0.67 of at most 1 GPU"
    )


@pytest.mark.parametrize(
    ("message", "operator", "user"),
    [
        ("OverLimit", "queue-full", "queue-full"),
        ('secret "creds" not found', None, "volume-missing"),
        ("Found pod without reservation, deleting", "two-modes", None),
        ('RuntimeClass "nvidia" not found', "runtime-class", "runtime-class"),
        ("something else", None, None),
    ],
)
def test_row_of_message_passes_over_rows_without_advice_for_the_reader(message, operator, user):
    for reader, name in (("operator", operator), ("user", user)):
        known = row_of_message(message, reader)
        assert (known and known[0].name) == name
        if known:
            assert known[0].fix if reader == "operator" else known[0].tell


@pytest.mark.parametrize(
    ("spec", "status", "lacks"),
    [
        ({"replicas": 2}, {"replicas": 1}, True),
        ({"replicas": 2}, {"replicas": 2}, False),
        ({}, {}, True),
        ({}, {"succeeded": 1}, False),
        ({}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 2}, True),
        ({"parallelism": 5}, {"active": 1}, True),
        ({"parallelism": 5, "completions": 5}, {"active": 1, "succeeded": 4}, False),
        ({"parallelism": 5, "completions": 5}, {"active": 1, "succeeded": 3}, True),
        ({"parallelism": 5}, {"active": 1, "succeeded": 1}, False),
        ({"parallelism": 0}, {}, False),
        ({"suspend": True}, {}, False),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, False),
    ],
)
def test_lacks_pods_compares_what_an_object_asks_for_with_what_it_created(spec, status, lacks):
    assert lacks_pods({"spec": spec, "status": status}) is lacks
