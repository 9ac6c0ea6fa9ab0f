"""What a team stack may have, asked from its own side and from the platform's."""

import copy

import pytest

from kai_fleet.settings import load
from kai_fleet.settings.team_stack import Facts
from kai_fleet_policies import validation

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}
PLATFORM = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {"ml": {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}, "gpus": 4}},
    "teamStacks": {
        "vision": {"nodePool": {"pool": "vision"}, "gpus": 4},
        "nlp": {"nodePool": {"pool": "nlp"}, "gpus": 8},
    },
}
HOST = {
    "cluster": {"name": "lab", "context": "lab"},
    "kai": {"version": "v0.16.8"},
    "queues": {
        "top": {
            **UNLIMITED,
            "children": {
                "mine": {**UNLIMITED, "gpu": {"quota": 4}},
                "theirs": UNLIMITED,
                "free": UNLIMITED,
            },
        }
    },
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "theirs", "gpus": 1}},
    "teamStacks": {"nlp": {"gpus": 4, "parentQueue": "mine"}, "nlp-x": {"gpus": 0}},
}
HOST_WITH_VISION = HOST | {"teamStacks": {"vision": PLATFORM["teamStacks"]["vision"]}}
VISION = {"name": "vision", "scheduler": VIRTUAL, "queues": {"all": {"gpu": {"quota": 4}}}}
NLP = {
    "name": "nlp",
    "scheduler": {"mode": "host"},
    "queues": {"nlp-train": UNLIMITED | {"gpu": {"quota": 4}}},
}


def told(raw):
    problems = validation.validate(raw).refused
    return {(p.check, p.path): p.message for p in problems}


def team_told(team, platform=PLATFORM):
    settings = load(platform).settings
    raw = {"platform": {"stack": "lab"}, "team": team}
    problems = validation.validate(raw, None, lambda _: Facts.of(settings)).refused
    return {(p.check, p.path): p.message for p in problems}


def changed(base, **keys):
    return {**copy.deepcopy(base), **keys}


def test_what_is_granted_is_allowed_on_both_sides():
    assert told(PLATFORM) == {}
    assert told(HOST) == {}
    assert team_told(VISION) == {}
    assert team_told(NLP, HOST) == {}
    assert team_told(changed(NLP, queues={}, queue="mine"), HOST) == {}


def test_a_team_in_another_mode_than_the_platform_is_refused():
    assert "kai-fleet:team.scheduler.mode" in {
        path for rule, path in team_told(VISION, HOST_WITH_VISION) if rule == "team-one-mode"
    }


def test_queues_on_the_host_carry_the_teams_name():
    path = "kai-fleet:team.queues"
    found = team_told(changed(NLP, queues={"train": {}, "nlp": {}}), HOST)
    assert {place for rule, place in found if rule == "team-parent-queue"} == {f"{path}.train"}
    assert "write nlp-train" in found[("team-parent-queue", f"{path}.train")]


def test_a_teams_queues_fit_into_the_granted_one():
    queues = {
        "nlp-a": UNLIMITED | {"gpu": {"quota": 3}},
        "nlp-b": UNLIMITED | {"gpu": {"quota": 2}},
    }
    found = team_told(changed(NLP, queues=queues), HOST)
    assert "add up to 5, above its quota of 4" in str(found)


def test_grants_that_clash_with_each_other_are_refused_on_the_platform():
    stacks = PLATFORM["teamStacks"]
    both = told(changed(PLATFORM, teamStacks={**stacks, "ml": stacks["vision"]}))
    assert "drop one of the two" in both[("team-unique", "kai-fleet:teamStacks.ml")]
    mine = PLATFORM["teams"]["ml"]["nodePool"]
    same = told(changed(PLATFORM, teamStacks={"ml": {"nodePool": mine, "gpus": 1}}))
    assert not [rule for rule, _ in same if rule == "team-node-pools"], "a team beside itself"
    for pool in ("ml", "vision"):
        grants = {**stacks, "late": {"nodePool": {"pool": pool}, "gpus": 1}}
        found = told(changed(PLATFORM, teamStacks=grants))
        assert ("team-node-pools", "kai-fleet:teamStacks.late.nodePool") in found


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        ("nosuch", "which is no queue of kai-fleet:queues; write free"),
        ("theirs", "which team ml has; write free"),
        ("mine", "which the team stack of nlp has; write free"),
        ("top", "which has queues of the platform below it; write free"),
    ],
)
def test_a_granted_queue_is_a_free_leaf(queue, says):
    grants = {**HOST["teamStacks"], "late": {"gpus": 1, "parentQueue": queue}}
    found = told(changed(HOST, teamStacks=grants))
    assert says in found[("team-parent-queue", "kai-fleet:teamStacks.late.parentQueue")]


def test_the_platforms_own_problems_are_not_told_in_a_team_stack():
    teams = {**PLATFORM["teams"], "b": {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}}}
    assert team_told(VISION, changed(PLATFORM, teams=teams)) == {}
