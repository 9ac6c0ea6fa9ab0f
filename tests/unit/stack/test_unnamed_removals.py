"""A deployed team that the file does not declare any more goes only when it is named."""

import json
from contextvars import ContextVar

import pulumi
import pytest
from pulumi.runtime import config

from kai_fleet.one_run import REMOVE_VARIABLE
from kai_fleet.ownership.deployed import Deployed
from kai_fleet_stack import validation

CLUSTER = {"name": "prod", "context": "prod"}
TEAM = {"scheduler": {"mode": "default"}, "gpus": 1, "nodePool": {"pool": "a"}}
URN = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team::{}"
BELOW = "urn:pulumi:prod::kai-fleet::kai-fleet:index:Team$kubernetes:core/v1:Namespace::other"


def deployed(*teams):
    return Deployed(urns=frozenset([*map(URN.format, teams), BELOW]))


def settings(monkeypatch, past, **raw):
    """What the program does first, with this configuration."""
    raw = {"cluster": CLUSTER, "teams": {"ml": TEAM}, **raw}
    handed = {f"kai-fleet:{key}": json.dumps(value) for key, value in raw.items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(handed))
    monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=None))
    return validation.checked_settings(past, lambda _: None)


@pytest.mark.parametrize("teams", [{"ml": TEAM}, {}], ids=["one cut", "all cut"])
def test_the_program_refuses_to_remove_a_team_that_nobody_named(monkeypatch, teams):
    with pytest.raises(pulumi.RunError) as refusal:
        settings(monkeypatch, deployed("ml", "research"), teams=teams)
    reported = str(refusal.value)
    assert "kai-fleet:teams.research: team research" in reported
    assert "its volumes would go" in reported
    assert "kai-fleet:removed: [research]" in reported
    assert "--yes research" in reported and f"{REMOVE_VARIABLE}=research" in reported
    assert ("team ml" in reported) == (not teams)
    assert "other" not in reported


GRANTED = "urn:pulumi:prod::kai-fleet::kai-fleet:index:TeamNamespace::vision"


def test_a_grant_goes_with_its_namespace_only_where_it_is_named(monkeypatch):
    """In it is the vCluster that the team's own stack made."""
    past = Deployed(urns=frozenset([GRANTED]))
    grant = {"nodePool": {"pool": "vision"}, "gpus": 1}
    assert settings(monkeypatch, past, teamStacks={"vision": grant})
    assert settings(monkeypatch, past, removed=["vision"])
    for teams in ({"ml": TEAM}, {"vision": {**TEAM, "nodePool": {"pool": "vision"}}}):
        with pytest.raises(pulumi.RunError, match="team vision: is deployed and not in the file"):
            settings(monkeypatch, past, teams=teams)


def test_a_named_team_may_go(monkeypatch):
    past = deployed("ml", "research", "dev")
    assert settings(monkeypatch, past, removed=["research", "dev", "long-gone"])
    monkeypatch.setenv(REMOVE_VARIABLE, "research,dev")
    assert settings(monkeypatch, past)


def test_the_name_of_the_stack_stands_for_its_teams(monkeypatch):
    monkeypatch.setenv(REMOVE_VARIABLE, pulumi.get_stack())
    assert settings(monkeypatch, deployed("ml", "research", "dev"))


def test_a_team_cannot_be_kept_and_removed():
    raw = {"cluster": CLUSTER, "teams": {"ml": TEAM}, "removed": ["ml"]}
    (problem,) = validation.validate(raw).refused
    assert problem.path == "kai-fleet:removed" and "names ml" in problem.message


def test_the_option_names_it(project):
    assert project.run("up", "--stack", "lab", "--yes", "ml").code == 0
    assert project.engine.asked == ["up lab, without ml"]
