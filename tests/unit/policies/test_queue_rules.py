"""The rules about queues, case by case: what passes, what is refused, and what waits."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.queues import UNLIMITED, QueueShare
from tests.unit.policies.samples import (
    FREE,
    cases,
    cluster,
    found,
    gpu_queue,
    passing,
    queue,
    refuses,
    waits,
)

pytestmark = pytest.mark.texts("rules")


def of(*queues, **more):
    return cluster(queues=queues, **more)


A = "kai-fleet:queues.a"
BELOW = (queue("top"), queue("team-a", "default-parent-queue"))
UNKNOWN_CHART = (Kai(UNKNOWN, makes_queues=UNKNOWN),)
BELOW_PARENT = "kai-fleet:queues.team-a.parent"
TYPO = (queue("default"), queue("other"), queue("test", "defualt"))
SLIP = (queue("dept"), queue("team-a", "detp"))
RING = (queue("b", "c"), queue("a", "b"), queue("c", "a"), queue("leaf", "a"))
TREE = [
    refuses("misspelt parent", of(*TYPO), "kai-fleet:queues.test.parent"),
    # The parent of KAI's chart is there or not, where the chart is known.
    waits("parent of a chart elsewhere", of(*BELOW, kai=()), BELOW_PARENT),
    waits("parent of an unknown chart", of(*BELOW, kai=UNKNOWN_CHART), BELOW_PARENT),
    refuses("parent that the chart lacks", of(*BELOW, version="v0.9.3"), BELOW_PARENT),
    refuses("slip beside a top queue", of(*SLIP, kai=()), BELOW_PARENT),
    refuses("ring", of(*RING), f"{A}.parent"),
    refuses("two of a name", of(queue("a"), queue("a")), A),
    waits("unknown parent", of(queue("a", UNKNOWN)), A),
    waits("unknown name", of(queue(UNKNOWN)), "kai-fleet:queues.Unknown.UNKNOWN"),
]


def lasting(value):
    return of(queue("a", spec={"reclaimMinRuntime": value}))


# More than 64 bits of nanoseconds hold: each passes as a duration, and KAI cannot decode it.
TOO_LONG = ("99999999999h", "2562048h", "9223372036855s", "9" * 20 + "ns")
DURATION = [
    *(
        refuses(f"{value!r}", lasting(value), f"{A}.reclaimMinRuntime")
        for value in ("1d12h", "90", 300, "1 hour", "", "-1h", "1h1h", *TOO_LONG)
    ),
    waits("unknown", of(queue("a", spec={"preemptMinRuntime": UNKNOWN})), A),
]


def told(**spec):
    return of(queue("a", spec=spec))


def share(resource, key, amount):
    return told(resources={resource: {key: amount}})


KEYS = {
    "quota": "quota",
    "limit": "limit",
    "overQuotaWeight": "weight",
}  # KAI's, and a stack file's
BOUNDS = [
    *(
        refuses(f"priority {priority}", told(priority=priority), f"{A}.priority")
        for priority in (-1, 2**31, 2**63 - 1, "high")
    ),
    *(
        refuses(f"{resource} {key} {amount}", share(resource, key, amount), f"{A}.{resource}.{at}")
        for resource in ("cpu", "memory", "gpu")
        for key, at in KEYS.items()
        for amount in (-7, -0.5, 1e308, "many")
    ),
    refuses("no weight is unlimited", share("gpu", "overQuotaWeight", -1), f"{A}.gpu.weight"),
    waits("unknown priority", told(priority=UNKNOWN), A),
    waits("unknown quota", share("gpu", "quota", UNKNOWN), A),
]

SCOPE = [
    refuses("namespace", of(queue("a", namespace="kai-scheduler")), A),
    waits("unknown namespace", of(queue("a", namespace=UNKNOWN)), A),
]

THREE = (queue("a"), queue("b", "a"), queue("c", "b"))
OLD, NEW = "v0.12.23", "v0.14.7"
DEPTH = [
    refuses("third level", of(*THREE, version=OLD), "kai-fleet:queues.c"),
    refuses("leaf on top", of(queue("lone"), version=OLD), "kai-fleet:queues.lone"),
    waits("unknown version", of(*THREE, version=UNKNOWN), "kai-fleet:queues.c"),
]


def within(*queues, gpus=4):
    """Queues of a team with so many GPUs."""
    return ClusterModel("ml", path="kai-fleet:teams.ml", queues=queues, gpus=gpus)


def shares(**more):
    return of(queue("a", None, FREE | more))


P4 = gpu_queue("p", None, 4)
P_QUOTA, TEAM_QUEUES = "kai-fleet:queues.p.gpu.quota", "kai-fleet:teams.ml.queues"
OVER_TOP = of(
    gpu_queue("t", None, 2, 4), gpu_queue("p", "t", 1, UNLIMITED), gpu_queue("a", "p", 1, 8)
)
NO_MEMORY = of(queue("a", None, {r: FREE[r] for r in ("cpu", "gpu")}))
BEYOND_TEAM = within(gpu_queue("a", None, 3, 4), gpu_queue("b", None, 2, 4))
QUOTA = [
    refuses("children above", of(P4, gpu_queue("a", "p", 3), gpu_queue("b", "p", 2)), P_QUOTA),
    refuses("unlimited child", of(P4, gpu_queue("a", "p", UNLIMITED)), P_QUOTA),
    # A second queue of one name does not count its children twice.
    refuses("twice", of(P4, replace(P4, path="x"), gpu_queue("a", "p", 5)), P_QUOTA),
    refuses("limit below quota", of(gpu_queue("a", None, 4, 2)), f"{A}.gpu.limit"),
    refuses("limit below unlimited", of(gpu_queue("a", None, UNLIMITED, 2)), f"{A}.gpu.limit"),
    refuses("limit above that over it", OVER_TOP, f"{A}.gpu.limit"),
    # KAI reads a limit that is left out as 0.
    refuses("no limit", shares(cpu=QueueShare(500, None)), f"{A}.cpu.limit"),
    refuses("no share", NO_MEMORY, f"{A}.memory"),
    refuses("above the team's GPUs", BEYOND_TEAM, TEAM_QUEUES),
    # A limit that was filled in from the team's GPUs is in nobody's file.
    refuses("filled in", within(gpu_queue("a", None, 5, 4)), TEAM_QUEUES),
    refuses("team's limit", within(gpu_queue("a", None, 2, 8)), f"{A}.gpu.limit"),
    refuses("team's no limit", within(gpu_queue("a", None, 2, UNLIMITED)), f"{A}.gpu.limit"),
    waits("unknown limit", shares(gpu=QueueShare(0, UNKNOWN)), f"{A}.gpu"),
    waits("unknown GPUs", within(gpus=UNKNOWN), TEAM_QUEUES),
]

CASES = {
    "queue-tree": TREE,
    "queue-duration": DURATION,
    "queue-bounds": BOUNDS,
    "queue-cluster-scoped": SCOPE,
    "queue-depth": DEPTH,
    "queue-quota": QUOTA,
}
PASSING = {
    "queue-tree": [cluster()],
    "queue-duration": [
        lasting(value)
        for value in ("1h30m", "0", "1.5h", "250ms", None, "999999h59m59s", "2592000s", "43200m")
    ],
    "queue-bounds": [
        told(),
        told(priority=0),
        told(priority=2**31 - 1),
        *(share("cpu", "quota", amount) for amount in (-1, 0, 0.5, 10**8)),
        share("gpu", "overQuotaWeight", 0),
    ],
    "queue-cluster-scoped": [of(queue("a", namespace=""))],
    "queue-depth": [cluster(version=OLD), of(*THREE, queue("lone"), version=NEW)],
    "queue-quota": [
        of(P4, gpu_queue("a", "p", 2), gpu_queue("b", "p", 2)),
        of(
            gpu_queue("p", None, UNLIMITED),
            gpu_queue("a", "p", UNLIMITED),
            gpu_queue("b", "p", 100),
        ),
        of(
            gpu_queue("p", None, 4, 4), gpu_queue("a", "p", 4, UNLIMITED)
        ),  # the parent's limit holds
        of(gpu_queue("p", None, 0.3), gpu_queue("a", "p", 0.1), gpu_queue("b", "p", 0.2)),
        of(gpu_queue("p", None, 0, 0)),
        of(queue("a", None, {r: FREE[r] for r in ("cpu", "memory")})),  # for pods without GPUs
        within(gpu_queue("a", None, 2, 4), gpu_queue("b", None, 2, 4)),
    ],
}


@pytest.mark.parametrize(("rule", "seen"), passing(PASSING))
def test_queue_rule_passes(rule, seen):
    assert found(rule, seen) == []


@pytest.mark.parametrize(("rule", "case"), cases(CASES))
def test_queue_rule_reports(rule, case, texts):
    case.reported_by(rule, texts)


def test_queue_quota_counts_each_child_whose_name_is_not_known():
    children = (gpu_queue(UNKNOWN, "p", 3), gpu_queue(UNKNOWN, "p", 3))
    (problem,) = [each for each in found("queue-quota", of(P4, *children)) if not each.undecided]
    assert "add up to 6, above its quota of 4" in problem.cause


def test_queue_quota_known_excess_is_refused_beside_an_unknown_amount(texts):
    problems = found("queue-quota", of(P4, gpu_queue("a", "p", 5), gpu_queue("b", "p", UNKNOWN)))
    assert [each.undecided for each in problems].count(False) == 1
    texts(*problems)


@pytest.mark.parametrize(
    ("path", "cpu", "memory"),
    [
        ("kai-fleet:queues.p", "2500m", "64500M"),
        ("urn:pulumi:s::p::kubernetes:scheduling.run.ai/v2:Queue::p", "2500", "64500"),
    ],
    ids=["stack file", "program"],
)
def test_queue_quota_amounts_are_written_as_their_author_would(path, cpu, memory, texts):
    most = FREE | {"cpu": QueueShare(2000), "memory": QueueShare(64_000)}
    more = FREE | {"cpu": QueueShare(2500), "memory": QueueShare(64_500)}
    tree = of(queue("p", None, most, path=path), queue("a", "p", more))
    first, second = found("queue-quota", tree)
    assert f" {cpu}," in first.message and f" {memory}," in second.message
    texts(first, second)


def test_queue_zero_quota_is_warned_about(texts):
    seen = shares(gpu=QueueShare(0, 4), cpu=QueueShare(0))
    (problem,) = found("queue-zero-quota", seen)
    assert (problem.level, problem.path) == (Level.ADVISORY, A)
    texts(problem)


def test_queue_zero_quota_of_what_it_may_not_use_passes():
    assert found("queue-zero-quota", shares(gpu=QueueShare(0, 0))) == []
