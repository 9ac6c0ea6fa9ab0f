"""Rules about stack files: what is written once, isolation that is off, queues and nodes of teams,
and what a team stack may have, asked from its own side and from the platform's.
"""

import copy

import pytest

from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts
from kai_fleet_stack.validation import validate

pytestmark = pytest.mark.texts("rules")

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
    """The problems of a level, by rule and path."""
    return {(p.check, p.path): p for p in validate(raw).problems if p.level is level}


def in_team_stack(team, platform=PLATFORM):
    """What a team's stack is refused, by rule and path."""
    facts = Facts.of(load(platform).settings)
    refused = validate({"platform": {"stack": "lab"}, "team": team}, None, lambda _: facts).refused
    return {(p.check, p.path): p for p in refused}


def test_grants_are_allowed_on_both_sides():
    assert found(PLATFORM) == found(HOST) == {}
    assert in_team_stack(VISION) == in_team_stack(NLP, HOST) == {}


def test_team_one_mode_refuses_another_than_the_platforms():
    grant = {"vision": PLATFORM["teamStacks"]["vision"]}
    refused = in_team_stack(VISION, HOST | {"teamStacks": grant})
    assert ("team-one-mode", "kai-fleet:team.scheduler.mode") in refused


def test_team_parent_queue_queues_on_the_host_carry_the_teams_name(texts):
    path = "kai-fleet:team.queues"
    refused = in_team_stack({**NLP, "queues": {"train": {}, "nlp": {}}}, HOST)
    assert {place for rule, place in refused if rule == "team-parent-queue"} == {f"{path}.train"}
    texts(refused["team-parent-queue", f"{path}.train"])


def displayed(name):
    """What is refused where a team's queue on the host has this name for people."""
    queues = {"nlp-a": {**UNLIMITED, "gpu": 1, "displayName": name}}
    refused = in_team_stack({**NLP, "queues": queues}, HOST)
    return refused.get(("team-parent-queue", "kai-fleet:team.queues.nlp-a.displayName"))


@pytest.mark.parametrize("name", ["nlp", "nlp: night"])
def test_team_parent_queue_display_name_that_begins_with_the_teams_passes(name):
    assert displayed(name) is None


@pytest.mark.parametrize("name", ["nlpx", "ml"])
def test_team_parent_queue_display_name_of_another_is_refused(name, texts):
    texts(displayed(name))


@pytest.mark.parametrize("value", ["99999999999h", "7 days", "-1h"])
def test_queue_duration_that_kai_cannot_decode_is_refused_at_plan(value, texts):
    raw = copy.deepcopy(HOST)
    raw["queues"]["top"]["preemptMinRuntime"] = value
    texts(found(raw)["queue-duration", "kai-fleet:queues.top.preemptMinRuntime"])


def test_queue_quota_a_teams_queues_fit_into_the_granted_one(texts):
    shares = {"nlp-a": 3, "nlp-b": 2}
    queues = {name: UNLIMITED | {"gpu": {"quota": quota}} for name, quota in shares.items()}
    refused = in_team_stack({**NLP, "queues": queues}, HOST)
    assert [rule for rule, _ in refused] == ["queue-quota"]
    texts(*refused.values())


def test_team_unique_refuses_a_grant_with_a_teams_name(texts):
    stacks = PLATFORM["teamStacks"]
    both = found({**PLATFORM, "teamStacks": {**stacks, "ml": stacks["vision"]}})
    texts(both["team-unique", "kai-fleet:teamStacks.ml"])


@pytest.mark.parametrize("pool", ["ml", "vision"])
def test_team_node_pools_refuses_a_grant_of_anothers_nodes(pool):
    grants = {**PLATFORM["teamStacks"], "late": {"nodePool": {"pool": pool}, "gpus": 1}}
    refused = found({**PLATFORM, "teamStacks": grants})
    assert ("team-node-pools", "kai-fleet:teamStacks.late.nodePool") in refused


@pytest.mark.parametrize("queue", ["nosuch", "theirs", "mine", "top"])
def test_team_parent_queue_grants_a_free_leaf(queue, texts):
    grants = {**HOST["teamStacks"], "late": {"gpus": 1, "parentQueue": queue}}
    refused = found({**HOST, "teamStacks": grants})
    texts(refused["team-parent-queue", "kai-fleet:teamStacks.late.parentQueue"])


def test_validate_a_team_stack_shows_no_problems_of_the_platform():
    teams = {**PLATFORM["teams"], "b": {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}}}
    assert in_team_stack(VISION, {**PLATFORM, "teams": teams}) == {}


OFF = {"isolation": {"level": "off"}}


def test_team_isolation_off_is_warned_about_where_it_is_written(texts):
    grant = {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}
    raw = {**CLUSTER, **OFF, "teams": {"ml": ML}, "teamStacks": {"nlp": grant}}
    warned = found(raw, Level.ADVISORY)
    assert [rule for rule, _ in warned].count("team-isolation") == 1
    texts(warned["team-isolation", "kai-fleet:isolation.level"])


def test_team_isolation_off_is_refused_for_a_team_stack(texts):
    raw = {**CLUSTER, **OFF, "teamStacks": {"nlp": {"nodePool": {"p": "nlp"}}}}
    texts(found(raw)["team-isolation", "kai-fleet:teamStacks.nlp.isolation.level"])


def test_team_queue_limit_is_what_its_teams_have_together(texts):
    raw = copy.deepcopy(HOST)
    children, path = raw["queues"]["top"]["children"], "kai-fleet:queues.top.children"
    children["theirs"] = {**UNLIMITED, "gpu": {"quota": 2, "limit": 4}}
    children["mine"] = {**UNLIMITED, "gpu": {"quota": 6}}
    refused = found(raw)
    of_limit = refused["team-queue-limit", f"{path}.theirs.gpu.limit"]
    texts(of_limit, refused["team-queue-limit", f"{path}.mine.gpu.quota"])
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


def test_vcluster_node_pool_of_another_team_is_warned_about_where_it_is_written(texts):
    (((path, subject), problem),) = fleet(vcluster={"nodePool": {"pool": "a"}}).items()
    assert (path, subject) == ("kai-fleet:vcluster.nodePool", "vClusters b and c")
    texts(problem)
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
def test_validate_tells_once_what_is_written_once_for_all_teams(stack, path):
    ((where, subject),) = fleet("abcdef", **stack)
    assert where == f"kai-fleet:{path}"
    assert subject.endswith(" a, b, c, d, e and f")


def test_validate_tells_a_teams_own_value_at_the_team():
    own = {"vcluster": {"values": {"controlPlane": {"statefulset": {"x": 1}}}, "version": "v0.1.0"}}
    assert set(fleet("ab", vcluster={"values": {"controlPlan": {}}}, b=own)) == {
        ("kai-fleet:teams.b.vcluster.values.controlPlane.statefulset", "vCluster b"),
        ("kai-fleet:teams.b.vcluster.version", "vCluster b"),
        ("kai-fleet:vcluster.values.controlPlan", "vClusters a and b"),
    }
