"""What running pods are told before their team gets its guard, held to what that guard denies."""

import pytest

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.isolation.refused_pods import refused
from kai_fleet.settings import load
from tests.attacks.attempts import ATTEMPTS
from tests.attacks.host import WITH_KAI_INSIDE, WITH_KAI_ON_HOST
from tests.attacks.legitimate import ALLOWED

STACKS = {
    team: fleet_of(load(raw).settings)
    for raw in (WITH_KAI_INSIDE, WITH_KAI_ON_HOST)
    for team in raw["teams"]
}
# What a priority class stands for, which the API server writes on each pod.
PRIORITIES = {"train": 50, "batch": 1000, "urgent": 100_000}
NODES = {f"{pool}-1": {"kai-fleet/pool": pool} for pool in ("ml", "research", "dev", "system")}
# Refused by a sum, by the guard of queues, by who asks, or by Kubernetes itself: nothing that a
# running pod shows, on which KAI writes what no tenant may.
ELSEWHERE = (
    *("exceeded quota", "write the label kai.scheduler/queue"),
    *("leave the others to KAI", "integer value of priority"),
)
# The host's scheduler writes a name there, too.
HOST_CHOOSES = (
    ("nlp", "another team's node by name"),
    ("nlp", "a node that is to come, by name"),
    ("dev", "a node that is to come, by name"),
)


def running(body):
    name = body["spec"].get("priorityClassName")
    body["spec"]["priority"] = PRIORITIES.get(name, 0)
    return {**body, "status": {"phase": "Running"}}


def judged(team, body):
    return refused([running(body)], STACKS[team].teams[team].rules, NODES)


DENIED = [
    pytest.param(team, body, id=f"{team}: {attempt.name}")
    for attempt in ATTEMPTS
    if attempt.change is None
    for team, body in ((team, attempt.body(team)) for team in attempt.teams if team in STACKS)
    if body["kind"] == "Pod" and not attempt.says.startswith(ELSEWHERE)
    if (team, attempt.name) not in HOST_CHOOSES
]
PASSES = [
    pytest.param(team, body, id=f"{team}: {allowed.name}")
    for allowed in ALLOWED
    for team, body in allowed.objects()
    if team not in ("open",) and body["kind"] == "Pod"
]


@pytest.mark.parametrize(("team", "body"), DENIED)
def test_what_the_host_denies_is_named_where_it_runs_already(team, body):
    assert judged(team, body)


@pytest.mark.parametrize(("team", "body"), PASSES)
def test_what_the_host_lets_in_is_not(team, body):
    assert judged(team, body) == {}


def test_there_are_enough_of_both():
    assert len(DENIED) > 130
    assert len(PASSES) > 60


@pytest.mark.parametrize(
    ("name", "kind"), [("ml-0", "StatefulSet"), ("ml-6d5f9c7b8-x2x4z", "ReplicaSet")]
)
def test_the_control_plane_may_be_where_the_platform_has_it(name, kind):
    own = {"app": "vcluster", "release": "ml"}
    body = {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": own,
            "ownerReferences": [{"kind": kind, "name": "ml"}],
        },
        "spec": {"nodeName": "system-1", "containers": [{"name": "syncer", "image": "v"}]},
    }
    assert judged("ml", body) == {}


@pytest.mark.parametrize("status", [{"phase": "Succeeded"}, {"phase": "Failed"}])
def test_what_is_over_is_not_made_again(status):
    body = {
        "metadata": {"name": "done"},
        "spec": {"hostPID": True, "containers": []},
        "status": status,
    }
    assert refused([body], STACKS["ml"].teams["ml"].rules, NODES) == {}
