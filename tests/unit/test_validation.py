"""Types and rules in one report."""

import pytest

from kai_fleet.finding import Level
from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.settings import load
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import validation

CLUSTER = {"name": "lab", "context": "lab"}


def refused(**raw):
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, **raw}
    return {(p.check, p.path) for p in validation.validate(raw).refused}


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-host", "dev", "prod"])
def test_no_rule_refuses_a_stack_of_this_repository(stack):
    verdict = validation.validate(reading.read(reading.path_of(stack)))
    assert verdict.refused == []


def test_wrong_types_and_broken_rules_come_in_one_report():
    found = refused(
        gpu={"provider": "oprator"},
        kai={"version": "v0.16.8"},
        queues={"a": {"children": {"b": {"children": {"a": {}}}}}},
        teams={
            "x": {"scheduler": {"mode": "virtul"}},
            "nlp": {"scheduler": {"mode": "host"}, "queue": "nosuch"},
        },
    )
    assert found == {
        ("config", "kai-fleet:gpu.provider"),
        ("config", "kai-fleet:teams.x.scheduler.mode"),
        ("queue-tree", "kai-fleet:queues.a.children.b.children.a"),
        ("workload-leaf-queue", "kai-fleet:teams.nlp.queue"),
    }


def test_a_wrong_amount_brings_no_wrong_sums_along():
    tree = {"a": {"gpu": {"quota": "x"}, "children": {"b": {"gpu": {"quota": 4}}}}}
    assert refused(queues=tree) == {("config", "kai-fleet:queues.a.gpu.quota")}


def test_quotas_above_the_parents_name_the_key():
    tree = {"a": {"gpu": {"quota": 2}, "children": {"b": {"gpu": {"quota": 4}}}}}
    assert [rule for rule, _ in refused(queues=tree)] == ["queue-quota"]


def test_a_warning_does_not_refuse():
    teams = {"ml": {"scheduler": {"mode": "virtual", "version": "v0.7.11"}, "nodePool": {"p": "a"}}}
    verdict = validation.validate({"cluster": CLUSTER, "teams": teams})
    assert verdict.refused == []
    assert {p.level for p in verdict.problems} == {Level.ADVISORY}


def test_the_report_counts_and_lists():
    report = validation.report(
        validation.validate({"cluster": {"name": "lab"}, "tems": {}}).refused
    )
    assert report.startswith("the stack's configuration has 2 mistakes:")
    assert "kai-fleet:tems: key tems: is an unknown key; write teams [config]" in report


HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": {"all": {"gpu": 8, "children": {"a": {"gpu": 4}, "b": {"gpu": 4}}}},
}
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}
OWN_NODES = {"scheduler": VIRTUAL, "nodePool": {"pool": "a"}, "gpus": 2}


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "red"},
        {"gpus": "four"},
        {"nodePool": {"pool": 7}},
        {"queue": ["a"]},
        {"tolerations": [{"key": "dedicated", "efect": "NoSchedule"}]},
        {"scheduler": {"mode": "hots"}},
        {"scheduler": "host"},
        {"isolation": {"level": "on"}},
        {"vcluster": {"imagePullSecrets": [7]}},
    ],
)
def test_a_wrong_key_of_one_team_hides_no_error_of_another_and_makes_none(wrong):
    sound = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 4, "nodePool": {"pool": "a"}}
    teams = {
        "ml": {**sound, **wrong},
        "nlp": {**sound, "queue": "all", "gpus": 8},  # no leaf
        "web": {**sound, "queue": "b"},
    }
    (of_ml, of_nlp) = sorted(refused(**HOST, teams=teams), key=lambda it: it[1])
    assert of_ml[0] == "config" and of_ml[1].startswith("kai-fleet:teams.ml.")
    assert of_nlp == ("workload-leaf-queue", "kai-fleet:teams.nlp.queue")


@pytest.mark.parametrize("wrong", [{"scheduler": {}}, {"gpu": 2}, {"nodePool": [], "gpus": 1}])
def test_two_teams_with_one_pool_are_told_beside_a_wrong_team(wrong):
    teams = {"ml": {**OWN_NODES, **wrong}, "nlp": OWN_NODES, "web": OWN_NODES}
    found = refused(kai=None, teams=teams)
    assert ("team-node-pools", "kai-fleet:teams.web.nodePool") in found
    assert {path for rule, path in found if rule != "config"} == {"kai-fleet:teams.web.nodePool"}, (
        "the pool of a team that was not read whole counts for none"
    )


@pytest.mark.parametrize("cluster", [{"name": "lab", "contxt": "lab"}, {"nam": "lab"}, "lab", None])
def test_a_wrong_cluster_hides_no_rule(cluster):
    raw = {"cluster": cluster, "teams": {"nlp": OWN_NODES, "web": OWN_NODES}}
    found = {(p.check, p.path) for p in validation.validate(raw).refused}
    assert {rule for rule, _ in found} == {"config", "team-node-pools"}


def test_a_sum_counts_no_team_that_was_not_read():
    """Of two teams with one queue the other's GPUs alone are less than the queue promises."""
    share = {"scheduler": {"mode": "host"}, "queue": "a", "nodePool": {"pool": "a"}, "gpus": 2}
    teams = {"ml": {**share, "gpus": "two"}, "nlp": share}
    assert refused(**HOST, teams=teams) == {("config", "kai-fleet:teams.ml.gpus")}
    teams["ml"] = {**share, "queue": {"name": "a"}}  # whose queue it is nobody knows
    assert refused(**HOST, teams=teams) == {("config", "kai-fleet:teams.ml.queue")}
    teams["ml"] = {**share, "queue": None}
    assert refused(**HOST, teams=teams) == {("config", "kai-fleet:teams.ml.queue")}
    teams["ml"] = {**share, "gpus": 1}
    assert {rule for rule, _ in refused(**HOST, teams=teams)} >= {"team-queue-limit"}


def test_a_sum_of_another_team_is_told_beside_a_wrong_one():
    queues = {"top": {"gpu": 2, "children": {"a": {"gpu": 2}, "b": {"gpu": 2}}}}
    nlp = {"scheduler": VIRTUAL, "nodePool": {"pool": "b"}, "gpus": 2, "queues": queues}
    found = refused(kai=None, teams={"ml": {**OWN_NODES, "gpus": "two"}, "nlp": nlp})
    assert found == {
        ("config", "kai-fleet:teams.ml.gpus"),
        ("queue-quota", "kai-fleet:teams.nlp.queues.top.gpu.quota"),
    }


def test_a_team_with_a_wrong_key_is_still_told_of_its_queue():
    team = {"scheduler": {"mode": "host"}, "queue": "all", "gpus": 4, "colour": "red"}
    assert refused(**HOST, teams={"ml": team}) == {
        ("config", "kai-fleet:teams.ml.colour"),
        ("workload-leaf-queue", "kai-fleet:teams.ml.queue"),
    }


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        ("queues", {"all": {"gpu": 8, "childern": {"a": {"gpu": 4}}}}),
        ("queues", {"all": {"gpu": 8, "children": {"a": []}}}),
        ("queues", "queues/nosuch.yaml"),
        ("kai", {"version": 0.16}),
    ],
)
def test_what_a_wrong_section_would_have_is_not_missed(section, wrong):
    team = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 4}
    grants = {"own": {"gpus": 4, "nodePool": {"pool": "o"}, "parentQueue": "a"}}
    for teams in ({"teams": {"ml": team}}, {"teamStacks": grants}):
        assert {rule for rule, _ in refused(**{**HOST, section: wrong}, **teams)} == {"config"}


def test_beside_a_kai_that_was_not_read_a_grant_is_not_taken_for_one_with_its_own():
    team = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 4}
    grants = {"own": {"gpus": 4, "nodePool": {"pool": "o"}, "parentQueue": "b"}}
    found = refused(**{**HOST, "kai": "v0.16.8"}, teams={"ml": team}, teamStacks=grants)
    assert found == {("config", "kai-fleet:kai")}


def test_a_shard_that_was_not_read_is_not_missed():
    kai = {"version": "v0.16.8", "shards": {"fast": []}}
    found = refused(kai=kai, queues={"all": {"gpu": 8, "shard": "fast"}})
    assert found == {("config", "kai-fleet:kai.shards.fast")}


@pytest.mark.parametrize(
    ("vcluster", "team"),
    [
        ({"version": 0.36}, {"values": {"sleepMode": {"enabled": True}}, "licensed": True}),
        ({"licensed": "yes"}, {"values": {"sleepMode": {"enabled": True}}}),
        ({"untested": "yes", "version": "v0.37.0"}, {}),
    ],
)
def test_values_are_not_judged_by_a_version_or_licence_that_was_not_read(vcluster, team):
    teams = {"ml": {**OWN_NODES, "vcluster": team}}
    found = refused(kai=None, vcluster=vcluster, teams=teams)
    assert {rule for rule, _ in found} == {"config"}


def test_a_deployed_team_that_cannot_be_read_is_not_removed():
    raw = {"cluster": CLUSTER, "teams": {"ml": {**OWN_NODES, "scheduler": {}}, "nlp": OWN_NODES}}
    assert validation.unnamed_removals(validation.validate(raw), ["ml", "nlp", "web"]) == ["web"]
    raw["teams"] = [*raw["teams"]]
    assert validation.unnamed_removals(validation.validate(raw), ["ml", "nlp", "web"]) == []
    raw = {"cluster": CLUSTER, "removed": "web"}
    assert validation.unnamed_removals(validation.validate(raw), ["web"]) == []


def test_a_team_stacks_own_errors_come_in_one_report():
    grant = {"parentQueue": "a", "gpus": 4}
    platform = load({"cluster": CLUSTER, **HOST, "teamStacks": {"own": grant}})
    team = {"name": "own", "scheduler": {"mode": "host"}, "colour": "red"}
    team["queues"] = {"own-a": {"children": {"own-b": {}}}, "own-c": {"children": {"own-b": {}}}}
    raw = {"platform": {"stack": "lab"}, "team": team}
    facts = platform_facts(platform.settings)
    found = {(p.check, p.path) for p in validation.validate(raw, facts_of=lambda _: facts).refused}
    assert found == {
        ("config", "kai-fleet:team.colour"),
        ("queue-tree", "kai-fleet:team.queues.own-c.children.own-b"),
    }
