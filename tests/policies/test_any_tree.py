"""Clusters that are right pass all rules, whichever of their values are not known yet."""

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.pods import PodContainer
from kai_fleet_policies.rules import check
from tests.policies.samples import cluster, gpu_queue, team, workload

WHOLE = PodContainer("main", limits={"nvidia.com/gpu": "1"})
TREE = (
    *(gpu_queue("top", None, 6, 8), gpu_queue("a", "top", 4, 8), gpu_queue("b", "top", 2, -1)),
    *(gpu_queue("free", None, -1), gpu_queue("c", "free", -1)),
)
DEEPER = (*TREE, gpu_queue("lone", None, 1), gpu_queue("d", "a", 4, 4), gpu_queue("e", "c", 3))
PODS = (
    workload("p0", labels={QUEUE_LABEL: "b"}, annotations={"gpu-fraction": "0.5"}),
    workload("p1", labels={QUEUE_LABEL: "b"}, annotations={"gpu-memory": "2000"}),
    workload("p2", labels={QUEUE_LABEL: "b"}, containers=(WHOLE,)),
    workload("p3", labels={}, scheduler=None),
)
TEAMS = (team("t0", "host", {}), team("t1", "default", {}))
RIGHT = [
    cluster(*PODS, version=version, queues=DEEPER if version == "v0.16.8" else TREE, teams=TEAMS)
    for version in ("v0.7.11", "v0.16.8")
]
KEPT = {"path", "find_key", "kind", "part", "scheduled_by", "queue_elsewhere"}


def _blur(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts unknown, as at a first preview."""

    def part(inner: Any) -> Any:
        return UNKNOWN if chance.random() < 0.1 else _blur(inner, chance)

    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value) if f.name not in KEPT]
        return replace(value, **{name: part(getattr(value, name)) for name in names})
    if isinstance(value, dict):
        # A share as a whole is never unknown, only what it says.
        return {k: _blur(v, chance) if is_dataclass(v) else part(v) for k, v in value.items()}
    return value


@pytest.mark.parametrize("right", RIGHT, ids=lambda item: item.kai[0].version)
def test_what_is_not_known_makes_open_questions_and_never_refusals(right):
    assert [p for p in check([right]) if p.level is Level.MANDATORY] == []
    for seed in range(30):
        chance = random.Random(seed)
        parts = ("queues", "workloads", "kai")
        blurred = {key: tuple(_blur(one, chance) for one in getattr(right, key)) for key in parts}
        problems = check([replace(right, **blurred)])
        assert [p for p in problems if p.level is Level.MANDATORY] == [], seed
        assert all(problem.message for problem in problems)
