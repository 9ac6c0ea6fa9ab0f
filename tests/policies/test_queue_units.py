"""Amounts of a Queue that are hardly meant, or no numbers."""

import pytest

from kai_fleet.finding import Level
from kai_fleet.fleet.queues import QueueShare
from kai_fleet_policies import validation
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.rules import check
from tests.policies.samples import FREE, cluster, found, manifest, queue

RULE = "queue-units"
UNBOUND = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def declared(**resources):
    spec = {"resources": dict.fromkeys(("cpu", "memory", "gpu"), UNBOUND) | resources}
    body = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "odd"}}
    return check(clusters([manifest({**body, "spec": spec})]))


def advice(**resources):
    return [p.message for p in declared(**resources) if p.check == RULE]


@pytest.mark.parametrize(
    ("resources", "says"),
    [
        (
            {"cpu": {"quota": 4, "limit": 8}},
            "has cpu quota 4 (millicores) and limit 8 (millicores); that is 0.008 of a core for all"
            " its pods; write 8000 for 8 cores",
        ),
        (
            {"memory": {"quota": -1, "limit": 80_000_000_000}},
            "has memory limit 80000000000 (MB); that is 80 PB, a limit that never holds;"
            " write 80000 for 80000000000 bytes",
        ),
        (
            {"memory": {"quota": 0, "limit": 64}},
            "has memory limit 64 (MB); that is 64 MB for all its pods; write 64000 for 64 GB",
        ),
        (
            {"gpu": {"quota": "1", "limit": "-1"}},
            'has gpu quota "1" and gpu limit "-1" as text, and the Queue CRD takes numbers: the API'
            " server refuses it; write the number without quotes",
        ),
    ],
)
def test_amounts_that_are_hardly_meant_are_advised_about(resources, says):
    assert advice(**resources) == [says]


@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"cpu": {"quota": 500, "limit": 8000}, "memory": {"quota": 4096, "limit": 2_000_000}},
        {"cpu": {"quota": 0, "limit": -1}, "memory": {"quota": 0, "limit": 0}},
        {"gpu": {"quota": 0.5, "limit": 2}},
    ],
)
def test_amounts_as_kai_counts_them_get_no_word(resources):
    assert advice(**resources) == []


def test_it_stops_nothing():
    problems = declared(cpu={"quota": 4, "limit": 8, "overQuotaWeight": 1})
    assert all(p.level is Level.ADVISORY for p in problems)


def test_a_stack_file_is_advised_in_its_own_units():
    queues = {"top": {"cpu": {"limit": "8m"}, "memory": {"limit": "64M"}}}
    settings = {
        "cluster": {"name": "lab", "context": "lab"},
        "kai": {"version": "v0.16.8"},
        "queues": queues,
    }
    said = {p.path: p.message for p in validation.validate(settings).problems if p.check == RULE}
    assert said["kai-fleet:queues.top.cpu"].endswith("write 8 for 8 cores")
    assert said["kai-fleet:queues.top.memory"].endswith("write 64G for 64 GB")
    whole = {"top": {"cpu": {"limit": 8}, "memory": {"limit": "64Gi"}}}
    problems = validation.validate({**settings, "queues": whole}).problems
    assert [p for p in problems if p.check == RULE] == []


def test_a_share_that_is_not_there_is_another_rules():
    kept = queue("test", shares={"gpu": FREE["gpu"], "cpu": QueueShare(0, None)})
    assert found(RULE, cluster(queues=(kept,))) == []
