"""The rules about queues, case by case: what passes, what is refused, and what waits."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.queues import UNLIMITED, QueueShare
from tests.policies.samples import (
    FREE,
    cases,
    cluster,
    found,
    gpu_queue,
    judged,
    passes,
    queue,
    refusal,
    refuses,
    waits,
)


def of(*queues, **more):
    return cluster(queues=queues, **more)


TYPO = (queue("default"), queue("other"), queue("test", "defualt"))
BELOW = (queue("top"), queue("team-a", "default-parent-queue"))
RING = (queue("b", "c"), queue("a", "b"), queue("c", "a"), queue("leaf", "a"))
TREE = [
    *passes(cluster()),
    refuses(
        of(*TYPO),
        "has the parent defualt, which is not declared in host; write default or other",
    ),
    # The parent of KAI's chart is there or not, where the chart is known.
    waits(of(*BELOW, kai=()), "existingQueues: [default-parent-queue] in the pack's configuration"),
    waits(of(*BELOW, version=UNKNOWN), "default-parent-queue"),
    refuses(of(*BELOW, version="v0.9.3"), "default-parent-queue"),
    # Beside a top queue an absent parent is a slip.
    refuses(
        of(queue("dept"), queue("team-a", "detp"), kai=()),
        "write dept, or write existingQueues: [detp] in the pack's configuration of queue-tree",
    ),
    refuses(of(*RING), "is below itself (a → b → c → a); leave the parent of a, b or c out"),
    refuses(of(queue("a"), queue("a")), "rename one of the two queues a"),
    waits(of(queue("a", UNKNOWN)), "parent is known"),
    waits(of(queue(UNKNOWN)), "the name of the queue is known"),
]


def lasting(value):
    return of(queue("a", spec={"reclaimMinRuntime": value}))


DURATION = [
    *passes(*map(lasting, ("1h30m", "0", "1.5h", "250ms", None))),
    *(
        refuses(lasting(value), "write for example 90s, 1h30m, or 24h for a day")
        for value in ("1d12h", "90", 300, "1 hour", "", "-1h", "1h1h")
    ),
    # More than 64 bits of nanoseconds hold: each passes as a duration, and KAI cannot decode it.
    *(
        refuses(lasting(value), "at most 999999h")
        for value in ("99999999999h", "2562048h", "9223372036855s", "9" * 20 + "ns")
    ),
    *passes(*map(lasting, ("999999h59m59s", "2592000s", "43200m"))),
    waits(of(queue("a", spec={"preemptMinRuntime": UNKNOWN})), "preemptMinRuntime"),
]


def told(**spec):
    return of(queue("a", spec=spec))


def share(resource, key, amount):
    return told(resources={resource: {key: amount}})


BOUNDS = [
    *passes(
        told(),
        told(priority=0),
        told(priority=2**31 - 1),
        *(share("cpu", "quota", amount) for amount in (-1, 0, 0.5, 10**8)),
        share("gpu", "overQuotaWeight", 0),
    ),
    *(
        refuses(told(priority=priority), "write 0 to 2147483647")
        for priority in (-1, 2**31, 2**63 - 1, "high")
    ),
    *(
        refuses(share(resource, key, amount), f"has {resource} {key}")
        for resource in ("cpu", "memory", "gpu")
        for key in ("quota", "limit", "overQuotaWeight")
        for amount in (-7, -0.5, 1e308, "many")
    ),
    refuses(share("gpu", "limit", -7), "write 0 to 1000000, or -1 for unlimited"),
    refuses(share("gpu", "overQuotaWeight", -1), "write 0 to 1000000"),
    waits(told(priority=UNKNOWN), "priority"),
    waits(share("gpu", "quota", UNKNOWN), "gpu quota is known"),
]

SCOPE = [
    *passes(of(queue("a", namespace=""))),
    refuses(of(queue("a", namespace="kai-scheduler")), "leave metadata.namespace out"),
    waits(of(queue("a", namespace=UNKNOWN)), "namespace"),
]

THREE = (queue("a"), queue("b", "a"), queue("c", "b"))
OLD, NEW = "v0.12.23", "v0.14.7"
DEPTH = [
    *passes(cluster(version=OLD), of(*THREE, queue("lone"), version=NEW)),
    refuses(of(*THREE, version=OLD), f"is on level 3, and KAI {OLD} schedules from 2 levels only"),
    refuses(of(queue("lone"), version=OLD), "add a child queue below lone"),
    waits(of(*THREE, version=UNKNOWN), "version"),
]


def within(*queues, gpus=4):
    """Queues of a team with so many GPUs."""
    return Cluster("ml", path="kai-fleet:teams.ml", queues=queues, gpus=gpus)


def shares(**more):
    return of(queue("a", None, FREE | more))


P4 = gpu_queue("p", None, 4)
QUOTA = [
    *passes(
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
    ),
    refuses(
        of(P4, gpu_queue("a", "p", 3), gpu_queue("b", "p", 2)),
        "the gpu quotas of a and b add up to 5, above its quota of 4; lower them to 4 together",
    ),
    refuses(
        of(P4, gpu_queue("a", "p", UNLIMITED)), "quotas of a add up to unlimited, above its quota"
    ),
    # A second queue of one name does not count its children twice.
    refuses(of(P4, replace(P4, path="x"), gpu_queue("a", "p", 5)), "add up to 5"),
    refuses(of(gpu_queue("a", None, 4, 2)), "raise the limit to 4 or lower the quota to 2"),
    refuses(
        of(gpu_queue("a", None, UNLIMITED, 2)), "raise the limit to unlimited or lower the quota to"
    ),
    refuses(
        of(
            gpu_queue("t", None, 2, 4), gpu_queue("p", "t", 1, UNLIMITED), gpu_queue("a", "p", 1, 8)
        ),
        "has gpu limit 8, above the limit 4 of queue t over it; write at most 4",
    ),
    # KAI reads a limit that is left out as 0.
    refuses(
        shares(cpu=QueueShare(500, None)),
        "leaves its cpu limit out, which KAI reads as 0: no pod that asks for cpu ever runs; write",
    ),
    refuses(of(queue("a", None, {r: FREE[r] for r in ("cpu", "gpu")})), "has no share of memory"),
    refuses(
        within(gpu_queue("a", None, 3, 4), gpu_queue("b", None, 2, 4)),
        "add up to 5, above the team's GPUs of 4; lower them to 4 together",
    ),
    # A limit that was filled in from the team's GPUs is in nobody's file.
    refuses(within(gpu_queue("a", None, 5, 4)), "above the team's GPUs of 4"),
    *(
        refuses(within(gpu_queue("a", None, 2, limit)), "then refuses; write limit 4 or less")
        for limit in (8, UNLIMITED)
    ),
    waits(shares(gpu=QueueShare(0, UNKNOWN)), "gpu limit is known"),
    waits(within(gpus=UNKNOWN), "number of GPUs"),
]


CASES = {
    "queue-tree": TREE,
    "queue-duration": DURATION,
    "queue-bounds": BOUNDS,
    "queue-cluster-scoped": SCOPE,
    "queue-depth": DEPTH,
    "queue-quota": QUOTA,
}


@pytest.mark.parametrize(("rule", "seen", "level", "message"), cases(CASES))
def test_a_rule_passes_refuses_or_waits(rule, seen, level, message):
    judged(rule, seen, level, message)


@pytest.mark.parametrize(
    ("rule", "seen", "path"),
    [
        ("queue-duration", lasting("1d"), "kai-fleet:queues.a.reclaimMinRuntime"),
        ("queue-quota", of(gpu_queue("a", None, 4, 2)), "kai-fleet:queues.a.gpu.limit"),
        ("queue-bounds", share("gpu", "overQuotaWeight", -1), "kai-fleet:queues.a.gpu.weight"),
    ],
)
def test_a_finding_is_at_the_key_that_is_wrong(rule, seen, path):
    assert refusal(rule, seen).path == path


def test_a_known_excess_is_refused_beside_an_unknown_amount():
    problems = found("queue-quota", of(P4, gpu_queue("a", "p", 5), gpu_queue("b", "p", UNKNOWN)))
    assert any("add up to 5" in each.message and not each.undecided for each in problems)


@pytest.mark.parametrize(
    ("path", "cpu", "memory"),
    [
        ("kai-fleet:queues.p", "2500m, above its quota of 2;", "64500M, above its quota of 64G;"),
        ("urn:pulumi:s::p::kubernetes:scheduling.run.ai/v2:Queue::p", "2500, above", "64500"),
    ],
)
def test_each_resource_counts_and_is_written_as_its_author_would(path, cpu, memory):
    most = FREE | {"cpu": QueueShare(2000), "memory": QueueShare(64_000)}
    more = FREE | {"cpu": QueueShare(2500), "memory": QueueShare(64_500)}
    first, second = found(
        "queue-quota", of(queue("p", None, most, path=path), queue("a", "p", more))
    )
    assert f"add up to {cpu}" in first.message
    assert f"add up to {memory}" in second.message


@pytest.mark.parametrize(
    ("amounts", "warned"),
    [
        ({"gpu": QueueShare(0, 4), "cpu": QueueShare(0)}, True),
        ({"gpu": QueueShare(0, 0)}, False),  # a resource that it may not use at all
    ],
)
def test_a_zero_quota_is_warned_about(amounts, warned):
    problems = found("queue-zero-quota", shares(**amounts))
    assert [problem.level for problem in problems] == [Level.ADVISORY] * warned
    assert all("guarantees no cpu and gpu (quota 0)" in problem.message for problem in problems)
