"""Random valid clusters pass all rules; one mistake from each trap is found by its rule."""

from __future__ import annotations

import random
import time
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.model import (
    QUEUE_LABEL,
    UNKNOWN,
    Cluster,
    Container,
    KaiRelease,
    Queue,
    Share,
    Workload,
)
from policies.problem import Level
from policies.rules import check
from tests.policies.samples import FREE, cluster, refused_by, team, workload

SHARES = st.sampled_from(["fraction", "memory", "whole", "none"])


@st.composite
def trees(draw: st.DrawFn, depth: int) -> tuple[Queue, ...]:
    """A valid tree of at most `depth` levels, made from the leaves up so that quotas add up."""
    names = iter(f"q{i}" for i in range(1000))
    queues: list[Queue] = []

    def grow(level: int) -> tuple[str, float, float]:
        name = next(names)
        below = [grow(level + 1) for _ in range(draw(st.integers(0, 3)))] if level < depth else []
        if level == 1 and not below:
            below = [grow(2)]  # a top-level queue needs children through v0.12
        free = any(quota == -1 for _, quota, _ in below) or draw(st.booleans())
        most = max((limit for *_, limit in below), default=0.0)
        quota = -1.0 if free else sum(q for _, q, _ in below) + draw(st.integers(1, 4))
        limit = -1.0 if free or draw(st.booleans()) else max(quota, most) + draw(st.integers(0, 4))
        queues.append(Queue(name, None, FREE | {"gpu": Share(quota, limit)}))
        for child, _, _ in below:
            index = next(i for i, queue in enumerate(queues) if queue.name == child)
            queues[index] = replace(queues[index], parent=name)
        return name, quota, max(limit, most)

    for _ in range(draw(st.integers(1, 3))):
        grow(1)
    order = draw(st.permutations(range(len(queues))))
    return tuple(queues[i] for i in order)


@st.composite
def valid(draw: st.DrawFn) -> Cluster:
    version = draw(st.sampled_from(["v0.7.11", "v0.9.3", "v0.12.23", "v0.16.8"]))
    queues = draw(trees(4 if version == "v0.16.8" else 2))
    parents = {queue.parent for queue in queues}
    leaves = [queue.name for queue in queues if queue.name not in parents]
    pods = [
        _pod(i, draw(st.sampled_from(leaves)), draw(SHARES)) for i in range(draw(st.integers(1, 4)))
    ]
    teams = tuple(
        team(f"t{i}", draw(st.sampled_from(["host", "default"])), {})
        for i in range(draw(st.integers(0, 3)))
    )
    return cluster(*pods, version=version, queues=queues, virtual_clusters=teams)


def _pod(number: int, queue: object, share: str) -> Workload:
    annotations = {"fraction": {"gpu-fraction": "0.5"}, "memory": {"gpu-memory": "2000"}}
    limits = {"nvidia.com/gpu": "1"} if share == "whole" else {}
    return workload(
        f"p{number}",
        labels={QUEUE_LABEL: queue},
        annotations=annotations.get(share, {}),
        containers=(Container("main", limits=limits),),
    )


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
        lambda c: last_leaf(c, shares=FREE | {"cpu": Share(2, 1)}),
    ),
    "Q7 sum": (
        "queue-quota",
        lambda c: replace(
            c,
            queues=tuple(
                replace(q, shares=FREE | {"memory": Share(1, -1)}) if q.parent is None else q
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
    "W4": (
        "workload-gpu-sharing",
        lambda c: replace(
            pod(c, annotations={"gpu-fraction": "0.5"}, containers=()),
            kai=(KaiRelease("v0.9.3", gpu_sharing=False),),
        ),
    ),
    "W5": ("workload-known-keys", lambda c: pod(c, annotations={"gpu-fraction": 0.5})),
    "W6 label alone": ("workload-scheduler", lambda c: pod(c, scheduler=None)),
    "W6 scheduler alone": ("workload-scheduler", lambda c: pod(c, labels={})),
    "W8": ("namespace-reserved", lambda c: pod(c, namespace="kube-system")),
    "V1": (
        "team-node-pools",
        lambda c: replace(
            c, kai=(), virtual_clusters=(team("x", pool={"p": "1"}), team("y", pool={"p": "1"}))
        ),
    ),
    "V9": (
        "team-unique",
        lambda c: replace(c, virtual_clusters=(team("x", "host"), team("x", "host"))),
    ),
    "V14": ("team-one-mode", lambda c: replace(c, virtual_clusters=(team("x"),))),
    "K1": ("kai-version-known", lambda c: replace(c, kai=(KaiRelease("v0.20.1"),))),
}


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
    deeper = Queue("deep", of.tree.leaves[0], FREE)
    spoilt = replace(of, queues=(*of.queues, deeper), kai=(KaiRelease("v0.9.8"),), workloads=())
    assert "queue-depth" in refused_by(check([spoilt]))


def _blur(value: Any, chance: random.Random) -> Any:
    """The value with some of its parts unknown, as at a first preview."""
    if is_dataclass(value) and not isinstance(value, type):
        keep = {"path", "kind", "part", "filled_in_namespace", "scheduled_by"}
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


def _large(teams: int, queues: int, pods: int) -> list[Cluster]:
    share = {r: Share(1, 4) for r in ("cpu", "memory", "gpu")}
    above = {r: Share(1000, 1000) for r in ("cpu", "memory", "gpu")}
    result = [
        Cluster("host", virtual_clusters=tuple(team(f"t{i}", gpus=1000) for i in range(teams)))
    ]
    for i in range(teams):
        tree = [Queue("top", None, above)]
        tree += [Queue(f"q{j}", "top", share) for j in range(queues // teams - 1)]
        load = [
            workload(f"p{j}", labels={QUEUE_LABEL: "q1"}, annotations={"gpu-fraction": "0.5"})
            for j in range(pods // teams)
        ]
        result.append(
            cluster(*load, queues=tuple(tree), version="v0.16.8", name=f"t{i}", gpus=1000.0)
        )
    return result


@pytest.mark.parametrize("teams", [100, 1])
def test_a_thousand_queues_and_two_thousand_workloads_take_less_than_two_seconds(
    teams: int,
) -> None:
    large = _large(teams, 1000, 2000)
    begin = time.perf_counter()
    assert refused_by(check(large)) == set()
    assert time.perf_counter() - begin < 2


def test_two_thousand_mistakes_take_no_longer() -> None:
    lost = [workload(f"p{i}", labels={QUEUE_LABEL: f"x{i}"}) for i in range(2000)]
    queues = (Queue("top", None, FREE), *(Queue(f"q{i}", "top", FREE) for i in range(999)))
    begin = time.perf_counter()
    problems = check([cluster(*lost, queues=queues)])
    assert time.perf_counter() - begin < 2
    assert len([p for p in problems if p.level is Level.MANDATORY]) == 2000
