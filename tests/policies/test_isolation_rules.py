"""Isolation that is off, and the GPUs of a team's queue in host mode."""

import copy

from kai_fleet.finding import Level
from kai_fleet_policies import validation

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
ML = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 4}
LAB = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": ML}}
HOST = {
    "cluster": {"name": "lab", "context": "lab"},
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"a": UNLIMITED, "b": UNLIMITED}}},
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}},
    "teamStacks": {"nlp": {"gpus": 3, "parentQueue": "b"}},
}


def told(raw, level=Level.MANDATORY):
    problems = validation.validate(raw).problems
    return {(p.check, p.path): p.message for p in problems if p.level is level}


def test_off_is_said_at_each_preview_of_the_team_and_of_a_grant():
    raw = {
        **LAB,
        "isolation": {"level": "off"},
        "teamStacks": {"nlp": {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}},
    }
    found = told(raw, Level.ADVISORY)
    places = [path for rule, path in found if rule == "team-isolation"]
    assert places == ["kai-fleet:isolation.level"]
    assert "write baseline" in found[("team-isolation", places[0])]


def test_off_is_refused_for_a_team_with_a_stack_of_its_own():
    raw = {**LAB, "isolation": {"level": "off"}, "teamStacks": {"nlp": {"nodePool": {"p": "nlp"}}}}
    place = ("team-isolation", "kai-fleet:teamStacks.nlp.isolation.level")
    assert "write kai-fleet:teamStacks.nlp.isolation: {level: baseline}" in told(raw)[place]


def test_a_teams_queue_holds_no_more_gpus_than_the_team():
    assert told(HOST) == {}
    raw = copy.deepcopy(HOST)
    children = raw["queues"]["top"]["children"]
    children["a"] = {**UNLIMITED, "gpu": {"quota": 2, "limit": 4}}
    children["b"] = {**UNLIMITED, "gpu": {"quota": 4}}
    found = told(raw)
    path = "kai-fleet:queues.top.children"
    assert "write 2 or less" in found[("team-queue-limit", f"{path}.a.gpu.limit")]
    assert "write 3 or less" in found[("team-queue-limit", f"{path}.b.gpu.quota")]


def test_two_teams_of_one_queue_have_its_gpus_together():
    raw = copy.deepcopy(HOST)
    raw["teams"]["dev"] = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}
    raw["queues"]["top"]["children"]["a"] = {**UNLIMITED, "gpu": {"quota": 4}}
    assert told(raw) == {}


def test_nothing_goes_beside_the_queues_in_host_mode():
    raw = {**HOST, "guard": {"outsideQueues": "allow"}}
    assert "write deny" in told(raw)[("config", "kai-fleet:guard.outsideQueues")]
    raw = {**raw, "isolation": {"level": "off"}}
    assert ("config", "kai-fleet:guard.outsideQueues") not in told(raw)
