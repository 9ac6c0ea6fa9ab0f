"""Rules about stack files: what is written once, isolation that is off, queues and nodes of teams,
and what a team stack may have, asked from its own side and from the platform's.
"""

import copy

import pytest

from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings import load
from kai_fleet_stack.settings.team_stack import Facts
from kai_fleet_stack.validation import validate

CLUSTER = {"cluster": {"name": "lab", "context": "lab"}}
UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}
ML = {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}, "gpus": 4}
PLATFORM = {
    **CLUSTER,
    "teams": {"ml": ML},
    "teamStacks": {
        "vision": {"nodePool": {"pool": "vision"}, "gpus": 4},
        "nlp": {"nodePool": {"pool": "nlp"}, "gpus": 8},
    },
}
MINE = {**UNLIMITED, "gpu": {"quota": 4}}
LEAVES = {"mine": MINE, "theirs": UNLIMITED, "free": UNLIMITED}
HOST = {
    **CLUSTER,
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": LEAVES}},
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "theirs", "gpus": 2}},
    "teamStacks": {"nlp": {"gpus": 4, "parentQueue": "mine"}, "nlp-x": {"gpus": 0}},
}
VISION = {"name": "vision", "scheduler": VIRTUAL, "queues": {"all": {"gpu": {"quota": 4}}}}
NLP = {
    "name": "nlp",
    "scheduler": {"mode": "host"},
    "queues": {"nlp-train": MINE},
}


def found(raw, level=Level.MANDATORY):
    return {(p.check, p.path): p.message for p in validate(raw).problems if p.level is level}


def in_team_stack(team, platform=PLATFORM):
    facts = Facts.of(load(platform).settings)
    refused = validate({"platform": {"stack": "lab"}, "team": team}, None, lambda _: facts).refused
    return {(p.check, p.path): p.message for p in refused}


def test_what_is_granted_is_allowed_on_both_sides():
    assert found(PLATFORM) == found(HOST) == {}
    assert in_team_stack(VISION) == in_team_stack(NLP, HOST) == {}


def test_a_team_in_another_mode_than_the_platform_is_refused():
    grant = {"vision": PLATFORM["teamStacks"]["vision"]}
    refused = in_team_stack(VISION, HOST | {"teamStacks": grant})
    assert ("team-one-mode", "kai-fleet:team.scheduler.mode") in refused


def test_queues_on_the_host_carry_the_teams_name():
    path = "kai-fleet:team.queues"
    refused = in_team_stack({**NLP, "queues": {"train": {}, "nlp": {}}}, HOST)
    assert {place for rule, place in refused if rule == "team-parent-queue"} == {f"{path}.train"}
    assert "write nlp-train" in refused[("team-parent-queue", f"{path}.train")]


def test_a_display_name_on_the_host_begins_with_the_teams_name():
    path = "kai-fleet:team.queues.nlp-a.displayName"
    for shown, passes in (("nlp", True), ("nlp: night", True), ("nlpx", False), ("ml", False)):
        team = {**NLP, "queues": {"nlp-a": {**UNLIMITED, "gpu": 1, "displayName": shown}}}
        refused = in_team_stack(team, HOST)
        assert (("team-parent-queue", path) not in refused) == passes
        assert passes or "begin it with nlp, or drop it" in refused[("team-parent-queue", path)]


@pytest.mark.parametrize("value", ["99999999999h", "7 days", "-1h"])
def test_a_duration_that_kai_cannot_decode_is_refused_at_plan(value):
    raw = copy.deepcopy(HOST)
    raw["queues"]["top"]["preemptMinRuntime"] = value
    place = ("queue-duration", "kai-fleet:queues.top.preemptMinRuntime")
    assert "at most 999999h" in found(raw)[place]


def test_a_teams_queues_fit_into_the_granted_one():
    shares = {"nlp-a": 3, "nlp-b": 2}
    queues = {name: UNLIMITED | {"gpu": {"quota": quota}} for name, quota in shares.items()}
    refused = in_team_stack({**NLP, "queues": queues}, HOST)
    assert "add up to 5, above its quota of 4" in str(refused)


def test_grants_that_clash_with_each_other_are_refused_on_the_platform():
    stacks = PLATFORM["teamStacks"]
    both = found({**PLATFORM, "teamStacks": {**stacks, "ml": stacks["vision"]}})
    assert "drop one of the two" in both[("team-unique", "kai-fleet:teamStacks.ml")]
    for pool in ("ml", "vision"):
        grants = {**stacks, "late": {"nodePool": {"pool": pool}, "gpus": 1}}
        refused = found({**PLATFORM, "teamStacks": grants})
        assert ("team-node-pools", "kai-fleet:teamStacks.late.nodePool") in refused


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
    refused = found({**HOST, "teamStacks": grants})
    assert says in refused[("team-parent-queue", "kai-fleet:teamStacks.late.parentQueue")]


def test_the_platforms_own_problems_are_not_shown_in_a_team_stack():
    teams = {**PLATFORM["teams"], "b": {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}}}
    assert in_team_stack(VISION, {**PLATFORM, "teams": teams}) == {}


OFF = {"isolation": {"level": "off"}}


def test_isolation_that_is_off_is_warned_about_where_it_is_written():
    grant = {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}
    raw = {**CLUSTER, **OFF, "teams": {"ml": ML}, "teamStacks": {"nlp": grant}}
    warned = found(raw, Level.ADVISORY)
    assert "write baseline" in warned[("team-isolation", "kai-fleet:isolation.level")]
    assert [rule for rule, _ in warned].count("team-isolation") == 1


def test_off_is_refused_for_a_team_with_a_stack_of_its_own():
    raw = {**CLUSTER, **OFF, "teamStacks": {"nlp": {"nodePool": {"p": "nlp"}}}}
    place = ("team-isolation", "kai-fleet:teamStacks.nlp.isolation.level")
    assert "write kai-fleet:teamStacks.nlp.isolation: {level: baseline}" in found(raw)[place]


def test_a_teams_queue_holds_no_more_gpus_than_its_teams_have_together():
    raw = copy.deepcopy(HOST)
    children, path = raw["queues"]["top"]["children"], "kai-fleet:queues.top.children"
    children["theirs"] = {**UNLIMITED, "gpu": {"quota": 2, "limit": 4}}
    children["mine"] = {**UNLIMITED, "gpu": {"quota": 6}}
    refused = found(raw)
    assert "write 2 or less" in refused[("team-queue-limit", f"{path}.theirs.gpu.limit")]
    assert "write 4 or less" in refused[("team-queue-limit", f"{path}.mine.gpu.quota")]
    raw["teams"]["dev"] = {"scheduler": {"mode": "host"}, "queue": "theirs", "gpus": 2}
    children["mine"]["gpu"]["quota"] = 4
    assert found(raw) == {}


def fleet(names="abc", **stack):
    """Teams with these names; keys of a stack, or of a team by its name."""
    teams = {
        name: {"scheduler": VIRTUAL, "nodePool": {"pool": name}, **stack.pop(name, {})}
        for name in names
    }
    return {(p.path, p.subject): p for p in validate({**CLUSTER, **stack, "teams": teams}).problems}


def test_nodes_of_another_team_are_warned_about_where_they_are_written():
    (((path, subject), problem),) = fleet(vcluster={"nodePool": {"pool": "a"}}).items()
    assert (path, subject) == ("kai-fleet:vcluster.nodePool", "vClusters b and c")
    assert "would run on node pool {pool: a}, the nodes of team a; write" in problem.message
    ((path, subject),) = fleet(b={"vcluster": {"nodePool": {"pool": "c", "zone": "1"}}})
    assert (path, subject) == ("kai-fleet:teams.b.vcluster.nodePool", "vCluster b")
    assert fleet(a={"vcluster": {"nodePool": {"pool": "a"}}}) == {}
    assert fleet(vcluster={"nodePool": {"zone": "1"}}) == {}, "of a team, or not"


@pytest.mark.parametrize(
    ("stack", "path"),
    [
        ({"vcluster": {"values": {"controlPlan": {}}}}, "vcluster.values.controlPlan"),
        ({"vcluster": {"version": "v0.9.9"}}, "vcluster.version"),
        ({"vcluster": {"replicas": 3}}, "vcluster.replicas"),
        ({"isolation": {"level": "off"}}, "isolation.level"),
    ],
)
def test_what_is_written_once_for_all_teams_is_told_once_where_it_is_written(stack, path):
    ((where, subject),) = fleet("abcdef", **stack)
    assert where == f"kai-fleet:{path}"
    assert subject.endswith(" a, b, c, d, e and f")


def test_a_teams_own_value_over_that_of_all_is_told_at_the_team():
    own = {"vcluster": {"values": {"controlPlane": {"statefulset": {"x": 1}}}, "version": "v0.1.0"}}
    assert set(fleet("ab", vcluster={"values": {"controlPlan": {}}}, b=own)) == {
        ("kai-fleet:teams.b.vcluster.values.controlPlane.statefulset", "vCluster b"),
        ("kai-fleet:teams.b.vcluster.version", "vCluster b"),
        ("kai-fleet:vcluster.values.controlPlan", "vClusters a and b"),
    }
