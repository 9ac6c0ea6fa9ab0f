"""Random valid clusters pass all rules, also where some of their values are not known yet."""

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kai_fleet.finding import Level
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.rules import check
from tests.policies.random_trees import valid


@settings(max_examples=60, deadline=None)
@given(valid())
def test_valid_clusters_pass(of: Cluster) -> None:
    assert [p for p in check([of]) if p.level is Level.MANDATORY] == []


def _blur(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts unknown, as at a first preview."""
    if is_dataclass(value) and not isinstance(value, type):
        keep = {"path", "kind", "part", "scheduled_by", "queue_copied", "queue_elsewhere"}
        changes = {
            f.name: UNKNOWN if chance.random() < 0.1 else _blur(getattr(value, f.name), chance)
            for f in fields(value)
            if f.name not in keep
        }
        return replace(value, **changes)
    if isinstance(value, dict):
        return {
            key: UNKNOWN
            if not is_dataclass(inner) and chance.random() < 0.1
            else _blur(inner, chance)
            for key, inner in value.items()
        }
    return value


@settings(max_examples=80, deadline=None)
@given(of=valid(), seed=st.integers(0, 10**6))
def test_unknown_values_make_open_questions_and_never_refusals(of: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    queues = tuple(_blur(queue, chance) for queue in of.queues)
    pods = tuple(_blur(pod, chance) for pod in of.workloads)
    kai = tuple(_blur(release, chance) for release in of.kai)
    problems = check([replace(of, queues=queues, workloads=pods, kai=kai)])
    assert [p for p in problems if p.level is Level.MANDATORY] == []
    assert all(p.message for p in problems)
