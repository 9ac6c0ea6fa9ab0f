import pytest

from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Kai
from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, host, open_question, refusal, team

POOLS = "team-node-pools"


@pytest.mark.parametrize(
    "teams",
    [
        (team("ml"), team("research"), team("dev", "default", {}, gpus=0)),
        (team("ml"), team("web", "default")),
        (team("a", pool={"pool": "x", "zone": "1"}), team("b", pool={"zone": "2"})),
        (team("a", "default", {}), team("b", "default", {})),  # one scheduler sees both
        (team("a", "host", {}), team("b", "default", {})),
        (team("only", pool={}),),
    ],
)
def test_teams_that_share_no_gpus_pass(teams):
    assert found(POOLS, host(*teams)) == []


@pytest.mark.parametrize(
    "pool", [{}, {"kai-fleet/pool": "ml"}, {"zone": "a"}, {"kai-fleet/pool": "ml", "zone": "a"}]
)
def test_pools_that_may_overlap_are_refused(pool):
    problem = refusal(POOLS, host(team("ml"), team("research", pool=pool)))
    assert (problem.subject, problem.path) == ("team research", "kai-fleet:teams.research.nodePool")
    assert "that of team ml ({kai-fleet/pool: ml})" in problem.message
    assert "{kai-fleet/pool: research} and {kai-fleet/pool: ml}" in problem.message


def test_a_team_of_the_host_needs_its_own_nodes_or_no_gpus():
    problem = refusal(POOLS, host(team("ml"), team("dev", "default", {})))
    assert "has no node pool, so it uses every node" in problem.message
    assert "the KAI inside ml would hand out GPUs" in problem.message
    assert problem.message.endswith("or gpus: 0 for dev")
    assert "team-node-pools" in {
        p.check for p in found(POOLS, host(team("a", "host", {}), team("ml")))
    }


def test_every_team_with_an_overlap_is_named_once():
    teams = [team(f"t{i}", pool={"pool": "same"}) for i in range(5)]
    assert [p.subject for p in found(POOLS, host(*teams))] == [f"team t{i}" for i in range(1, 5)]


def test_unknown_pools_are_told():
    for other in (team("b", pool=UNKNOWN), team("b", pool={"pool": UNKNOWN}), team("b", UNKNOWN)):
        assert "node pool" in open_question(POOLS, host(team("a"), other)).message
    assert found(POOLS, host(team("a", "default", {}), team("b", "default", UNKNOWN))) == []


ONE = "team-one-mode"


def test_one_mode_and_default_teams_pass():
    assert found(ONE, host(team("a"), team("b"), team("c", "default"))) == []
    assert found(ONE, cluster(teams=(team("a", "host"), team("c", "default")))) == []


def test_a_kai_inside_beside_one_on_the_host_is_refused():
    problem = refusal(ONE, cluster(teams=(team("ml"), team("dev", "default"))))
    assert (problem.subject, problem.path) == ("team ml", "kai-fleet:teams.ml.scheduler.mode")
    assert "beside KAI v0.9.3 on the host" in problem.message
    assert "write mode host (or default) here, or take KAI off the host" in problem.message
    assert "host mode of web" in refusal(ONE, host(team("ml"), team("web", "host"))).message


def test_an_unknown_mode_is_told_where_it_matters():
    assert "mode" in open_question(ONE, cluster(teams=(team("ml", UNKNOWN),))).message
    assert found(ONE, host(team("ml", UNKNOWN))) == []


def test_the_pools_that_are_proposed_differ():
    """Also where the other team's nodes are called after this one."""
    pool = {"pool": "vision"}
    said = found("team-node-pools", host(team("nlp", pool=pool), team("vision", pool=pool)))
    assert said[0].message.endswith("for example {pool: vision} and {pool: nlp}")


UNIQUE = "team-unique"


def test_names_are_unique_on_the_host():
    assert found(UNIQUE, host(team("a"), team("b"))) == []
    problem = refusal(UNIQUE, host(team("a"), team("a", path="kai-fleet:teams.second")))
    assert problem.path == "kai-fleet:teams.second"
    assert "again in team-a: names are unique on a host; write another name" in problem.message
    assert "name is known" in open_question(UNIQUE, host(team(UNKNOWN), team("a"))).message


def test_host_mode_costs_gangs():
    assert found("team-gang", host(team("a"), team("b", "default"))) == []
    (problem,) = found("team-gang", host(team("a", "host")))
    assert problem.level is Level.ADVISORY
    assert not problem.undecided
    assert "one by one, not as a gang; write mode virtual" in problem.message


def test_a_kai_release_is_named_even_without_a_version():
    bare = cluster(kai=(Kai(None),), teams=(team("ml"),))
    assert "KAI (no version) on the host" in refusal(ONE, bare).message
