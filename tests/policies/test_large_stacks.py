"""All rules together on many queues and workloads."""

import time

import pytest

from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.queues import DeclaredQueue, QueueShare
from kai_fleet.releases.keys import QUEUE_LABEL
from kai_fleet_policies.rules import check
from tests.policies.samples import FREE, cluster, refused_by, team, workload


def _large(teams: int, queues: int, pods: int) -> list[Cluster]:
    share = {r: QueueShare(1, 4) for r in ("cpu", "memory", "gpu")}
    above = {r: QueueShare(1000, 1000) for r in ("cpu", "memory", "gpu")}
    result = [Cluster("host", teams=tuple(team(f"t{i}", gpus=1000) for i in range(teams)))]
    for i in range(teams):
        tree = [DeclaredQueue("top", None, above)]
        tree += [DeclaredQueue(f"q{j}", "top", share) for j in range(queues // teams - 1)]
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
    begin = time.process_time()
    assert refused_by(check(large)) == set()
    assert time.process_time() - begin < 2


def test_two_thousand_mistakes_take_no_longer() -> None:
    lost = [workload(f"p{i}", labels={QUEUE_LABEL: f"x{i}"}) for i in range(2000)]
    queues = (
        DeclaredQueue("top", None, FREE),
        *(DeclaredQueue(f"q{i}", "top", FREE) for i in range(999)),
    )
    begin = time.process_time()
    problems = check([cluster(*lost, queues=queues)])
    assert time.process_time() - begin < 2
    assert len([p for p in problems if p.level is Level.MANDATORY]) == 2000
