"""Random valid clusters pass all rules; one mistake from each trap is found by its rule."""

import random
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Cluster, DevicePlugin, Kai
from kai_fleet.fleet.pods import PodContainer
from kai_fleet.fleet.queues import DeclaredQueue, QueueShare
from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.rules import check
from tests.policies.random_trees import valid
from tests.policies.samples import FREE, refused_by, team


def pod(of: Cluster, **changes: Any) -> Cluster:
    first, *rest = of.workloads
    return replace(of, workloads=(replace(first, **changes), *rest))


def last_leaf(of: Cluster, **changes: Any) -> Cluster:
    name = of.tree.leaves[-1]
    return replace(
        of, queues=tuple(replace(q, **changes) if q.name == name else q for q in of.queues)
    )


def a_parent(of: Cluster) -> str:
    return sorted(of.tree.children)[0]


MISTAKES = {
    "Q1": ("queue-cluster-scoped", lambda c: last_leaf(c, namespace="kai-scheduler")),
    "Q4": ("queue-duration", lambda c: last_leaf(c, preempt_min_runtime="1d")),
    "Q5 absent parent": ("queue-tree", lambda c: last_leaf(c, parent="nowhere")),
    "Q5 own parent": ("queue-tree", lambda c: last_leaf(c, parent=c.tree.leaves[-1])),
    "Q5 twice": ("queue-tree", lambda c: replace(c, queues=(*c.queues, c.queues[0]))),
    "Q5 cycle": (
        "queue-tree",
        lambda c: replace(
            c,
            queues=tuple(
                replace(q, parent=c.tree.children[a_parent(c)][0].name)
                if q.name == a_parent(c)
                else q
                for q in c.queues
            ),
        ),
    ),
    "Q7 limit below quota": (
        "queue-quota",
        lambda c: last_leaf(c, shares=FREE | {"cpu": QueueShare(2, 1)}),
    ),
    "Q7 sum": (
        "queue-quota",
        lambda c: replace(
            c,
            queues=tuple(
                replace(q, shares=FREE | {"memory": QueueShare(1, -1)}) if q.parent is None else q
                for q in c.queues
            ),
        ),
    ),
    "W1 none": ("workload-leaf-queue", lambda c: pod(c, labels={})),
    "W1 absent": ("workload-leaf-queue", lambda c: pod(c, labels={QUEUE_LABEL: "nowhere"})),
    "W1 parent": ("workload-leaf-queue", lambda c: pod(c, labels={QUEUE_LABEL: a_parent(c)})),
    "W2": (
        "workload-known-keys",
        lambda c: pod(c, annotations={"kai.scheduler/gpu-fraction": "1"}),
    ),
    "W3": ("workload-gpu-request", lambda c: pod(c, annotations={"gpu-fraction": "1.5"})),
    **{
        f"W3 {name}": (
            "workload-gpu-request",
            lambda c, wrong=wrong: pod(c, annotations=wrong, containers=()),
        )
        for name, wrong in {
            "NaN": {"gpu-fraction": "NaN"},
            "zero": {"gpu-fraction": "0"},
            "memory": {"gpu-memory": "2Gi"},
            "both": {"gpu-fraction": "0.5", "gpu-memory": "2000"},
            "devices": {"gpu-fraction-num-devices": "2"},
            "mps": {"mps": "true"},
        }.items()
    },
    "W3 with whole GPUs": (
        "workload-gpu-request",
        lambda c: pod(
            c,
            annotations={"gpu-fraction": "0.5"},
            containers=(PodContainer("main", limits={"nvidia.com/gpu": "1"}),),
        ),
    ),
    "W4": (
        "workload-gpu-sharing",
        lambda c: replace(
            pod(c, annotations={"gpu-fraction": "0.5"}, containers=()),
            kai=(Kai("v0.9.3", sharing="Disabled"),),
        ),
    ),
    "W5": ("workload-known-keys", lambda c: pod(c, annotations={"gpu-fraction": 0.5})),
    "W6 label alone": ("workload-scheduler", lambda c: pod(c, scheduler=None)),
    "W6 scheduler alone": ("workload-scheduler", lambda c: pod(c, labels={})),
    "W8": ("namespace-reserved", lambda c: pod(c, namespace="kube-system")),
    "W9": (
        "gpu-one-sharer",
        lambda c: replace(c, device_plugins=(DevicePlugin("time-slicing", "urn:plugin"),)),
    ),
    "Q2 no limit": (
        "queue-quota",
        lambda c: last_leaf(c, shares=FREE | {"memory": QueueShare(0, None)}),
    ),
    "Q6 lone top-level queue": (
        "queue-depth",
        lambda c: replace(
            c, queues=(*c.queues, DeclaredQueue("lone", None, FREE)), kai=(Kai("v0.9.8"),)
        ),
    ),
    "Q7 above its parent's limit": (
        "queue-quota",
        lambda c: replace(
            c,
            queues=(
                *c.queues,
                DeclaredQueue("low", None, FREE | {"cpu": QueueShare(0, 1)}),
                DeclaredQueue("high", "low", FREE | {"cpu": QueueShare(0, 2)}),
            ),
        ),
    ),
    "V1": (
        "team-node-pools",
        lambda c: replace(
            c, kai=(), teams=(team("x", pool={"p": "1"}), team("y", pool={"p": "1"}))
        ),
    ),
    "V9": ("team-unique", lambda c: replace(c, teams=(team("x", "host"), team("x", "host")))),
    "V14": ("team-one-mode", lambda c: replace(c, teams=(team("x"),))),
    "K1": ("kai-version-known", lambda c: replace(c, kai=(Kai("v0.20.1"),))),
}


ADVICE = {
    "Q8": ("queue-zero-quota", lambda c: last_leaf(c, shares=FREE | {"gpu": QueueShare(0, -1)})),
    "V15": ("team-gang", lambda c: replace(c, teams=(team("x", "host"),))),
}


@pytest.mark.parametrize("trap", ADVICE)
@settings(max_examples=12, deadline=None)
@given(of=valid())
def test_one_doubtful_thing_is_told_and_stops_nothing(trap: str, of: Cluster) -> None:
    rule, spoil = ADVICE[trap]
    problems = check([spoil(of)])
    assert rule in {problem.check for problem in problems if problem.level is Level.ADVISORY}
    assert refused_by(problems) == set()


@settings(max_examples=60, deadline=None)
@given(valid())
def test_valid_clusters_pass(of: Cluster) -> None:
    assert [p for p in check([of]) if p.level is Level.MANDATORY] == []


@pytest.mark.parametrize("trap", MISTAKES)
@settings(max_examples=12, deadline=None)
@given(of=valid())
def test_one_mistake_is_found_by_its_rule(trap: str, of: Cluster) -> None:
    rule, spoil = MISTAKES[trap]
    problems = [p for p in check([spoil(of)]) if p.level is Level.MANDATORY]
    assert rule in refused_by(problems)
    for problem in problems:
        assert problem.subject
        assert len(problem.message) > 30
        assert "Unknown" not in str(problem)


@settings(max_examples=12, deadline=None)
@given(of=valid())
def test_a_third_level_is_refused_by_versions_that_cannot_use_it(of: Cluster) -> None:
    deeper = DeclaredQueue("deep", of.tree.leaves[0], FREE)
    spoilt = replace(of, queues=(*of.queues, deeper), kai=(Kai("v0.9.8"),), workloads=())
    assert "queue-depth" in refused_by(check([spoilt]))


def _blur(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts unknown, as at a first preview."""
    if is_dataclass(value) and not isinstance(value, type):
        keep = {"path", "kind", "part", "scheduled_by", "writer"}
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
