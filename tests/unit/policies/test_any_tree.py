"""Clusters that are right pass all rules, whichever of their values are not known yet."""

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest

from kai_fleet.values import UNKNOWN, Unknown
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.pods import PodContainer
from kai_fleet_policies.model.queues import UNLIMITED
from kai_fleet_policies.rules import check
from kai_usage.keys import QUEUE_LABEL
from tests.unit.policies.samples import cluster, gpu_queue, host, team, workload

WHOLE = PodContainer("main", ("nvidia.com/gpu",))
TREE = (
    *(
        gpu_queue("top", None, 6, 8),
        gpu_queue("a", "top", 4, 8),
        gpu_queue("b", "top", 2, UNLIMITED),
    ),
    *(gpu_queue("free", None, UNLIMITED), gpu_queue("c", "free", UNLIMITED)),
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
RIGHT.append(host(team("a"), team("b")))


def _blur(value: Any, chance: random.Random) -> Any:
    """The value with some of what may be unknown by its type unknown, as at a first preview."""
    if isinstance(value, tuple):
        return tuple(_blur(inner, chance) for inner in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    hints = get_type_hints(type(value))
    changes = {
        field.name: _blur_maybe(getattr(value, field.name), chance)
        for field in fields(value)
        if Unknown in get_args(hints[field.name])
    }
    return replace(value, **changes)


def _blur_maybe(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return UNKNOWN
    if isinstance(value, dict):
        return {
            # A share as a whole is never unknown, only what it says.
            key: _blur(inner, chance) if is_dataclass(inner) else _blur_maybe(inner, chance)
            for key, inner in value.items()
        }
    return _blur(value, chance)


@pytest.mark.parametrize("right", RIGHT, ids=["v0.7.11", "v0.16.8", "inside"])
def test_check_unknown_values_make_open_questions_and_never_refusals(right):
    assert [p for p in check([right]) if p.level is Level.MANDATORY] == []
    for seed in range(60):
        chance = random.Random(seed)
        parts = ("queues", "workloads", "kai", "teams")
        blurred = {part: _blur(getattr(right, part), chance) for part in parts}
        problems = check([replace(right, **blurred)])
        assert [p for p in problems if p.level is Level.MANDATORY] == [], seed
        assert all(problem.message for problem in problems)
