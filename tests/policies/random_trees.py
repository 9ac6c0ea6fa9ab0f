"""Random clusters that are right in every way that the rules look at."""

from dataclasses import replace

from hypothesis import strategies as st

from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.pods import PodContainer, PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue, QueueShare
from tests.policies.samples import FREE, cluster, team, workload

SHARES = st.sampled_from(["fraction", "memory", "whole", "none"])


@st.composite
def trees(draw: st.DrawFn, depth: int) -> tuple[DeclaredQueue, ...]:
    """A valid tree of at most `depth` levels, made from the leaves up so that quotas add up."""
    names = iter(f"q{i}" for i in range(1000))
    queues: list[DeclaredQueue] = []

    def grow(level: int) -> tuple[str, float, float]:
        name = next(names)
        below = [grow(level + 1) for _ in range(draw(st.integers(0, 3)))] if level < depth else []
        if level == 1 and not below:
            below = [grow(2)]  # a top-level queue needs children through v0.12
        free = any(quota == -1 for _, quota, _ in below) or draw(st.booleans())
        most = max((limit for *_, limit in below), default=0.0)
        quota = -1.0 if free else sum(q for _, q, _ in below) + draw(st.integers(1, 4))
        limit = -1.0 if free or draw(st.booleans()) else max(quota, most) + draw(st.integers(0, 4))
        queues.append(DeclaredQueue(name, None, FREE | {"gpu": QueueShare(quota, limit)}))
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
    return cluster(*pods, version=version, queues=queues, teams=teams)


def _pod(number: int, queue: object, share: str) -> PodTemplate:
    annotations = {"fraction": {"gpu-fraction": "0.5"}, "memory": {"gpu-memory": "2000"}}
    limits = {"nvidia.com/gpu": "1"} if share == "whole" else {}
    return workload(
        f"p{number}",
        labels={QUEUE_LABEL: queue},
        annotations=annotations.get(share, {}),
        containers=(PodContainer("main", limits=limits),),
    )
