"""The small rules about queues: duration, scope, depth, zero quota."""

import pytest

from kai_fleet.finding import Level
from kai_fleet.fleet.queues import QueueShare
from kai_fleet.values import UNKNOWN
from tests.policies.samples import FREE, cluster, found, open_question, queue, refusal


@pytest.mark.parametrize("value", ["90s", "1h30m", "24h", "0", "1.5h", "250ms", None])
def test_go_durations_pass(value):
    kept = queue("a", preempt_min_runtime=value, reclaim_min_runtime=value)
    assert found("queue-duration", cluster(queues=(kept,))) == []


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("1d", "24h"),
        ("1w", "168h"),
        ("1d12h", "36h"),
        ("90", "90s"),
        (300, "5m"),
        ("2 days", "48h"),
        ("1 hour", "1h"),
        ("soon", "24h"),
        ("", "24h"),
    ],
)
def test_other_durations_are_refused_with_the_hours_to_write(value, advice):
    problem = refusal("queue-duration", cluster(queues=(queue("a", reclaim_min_runtime=value),)))
    assert problem.path == "kai-fleet:queues.a.reclaimMinRuntime"
    assert problem.subject == "queue a in host"
    assert problem.message.endswith(f"write reclaimMinRuntime: {advice}")


def test_an_unknown_duration_is_told():
    kept = queue("a", preempt_min_runtime=UNKNOWN)
    assert "preemptMinRuntime" in open_question("queue-duration", cluster(queues=(kept,))).message


@pytest.mark.parametrize("namespace", [None, "", "default"])
def test_queues_without_a_namespace_pass(namespace):
    """`default` is what a provider fills in before it has seen the CRD."""
    kept = queue("a", namespace=namespace)
    assert found("queue-cluster-scoped", cluster(queues=(kept,))) == []


def test_what_the_provider_fills_in_is_no_mistake_of_the_program():
    kept = queue("a", namespace="team-a", filled_in_namespace="team-a")
    assert found("queue-cluster-scoped", cluster(queues=(kept,))) == []


def test_a_namespaced_queue_is_refused():
    problem = refusal(
        "queue-cluster-scoped", cluster(queues=(queue("a", namespace="kai-scheduler"),))
    )
    assert "has the namespace kai-scheduler" in problem.message
    assert "leave metadata.namespace out" in problem.message
    kept = queue("a", namespace=UNKNOWN)
    assert "namespace" in open_question("queue-cluster-scoped", cluster(queues=(kept,))).message


THREE = (queue("a"), queue("b", "a"), queue("c", "b"))


@pytest.mark.parametrize("version", ["v0.7.11", "v0.9.3", "v0.12.23"])
def test_old_versions_take_two_levels_and_no_less(version):
    assert found("queue-depth", cluster(version=version)) == []
    problem = refusal("queue-depth", cluster(queues=THREE, version=version))
    assert problem.subject == "queue c in host"
    assert f"is on level 3, and KAI {version} schedules from 2 levels only" in problem.message
    problem = refusal("queue-depth", cluster(queues=(queue("lone"),), version=version))
    assert "never schedules pods from those; add a child queue below lone" in problem.message


@pytest.mark.parametrize("version", ["v0.14.7", "v0.16.8"])
def test_new_versions_take_any_depth(version):
    assert found("queue-depth", cluster(queues=(*THREE, queue("lone")), version=version)) == []


def test_depth_waits_for_the_version_only_where_it_matters():
    assert found("queue-depth", cluster(version=UNKNOWN)) == []
    assert "version" in open_question("queue-depth", cluster(queues=THREE, version=UNKNOWN)).message


def test_a_zero_quota_is_warned_about():
    kept = queue("a", shares=FREE | {"gpu": QueueShare(0, 4), "cpu": QueueShare(0, -1)})
    (problem,) = found("queue-zero-quota", cluster(queues=(kept,)))
    assert problem.level is Level.ADVISORY
    assert "guarantees no cpu and gpu (quota 0)" in problem.message
    assert "priorityClassName: train" in problem.message


def test_a_queue_that_may_not_use_a_resource_needs_no_quota_of_it():
    kept = queue("a", shares=FREE | {"gpu": QueueShare(0, 0)})
    assert found("queue-zero-quota", cluster(queues=(kept,))) == []
