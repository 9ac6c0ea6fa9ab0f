"""A team stack's file: its keys, what it takes from the platform, and what it may not have."""

import pytest

from kai_fleet_cli.stack_file.reading import facts_beside
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import (
    Facts,
    NoPlatformError,
    load_team_stack,
    read_platform,
)

LAB = {"name": "lab", "context": "lab"}
GRANT = {"nodePool": {"pool": "vision"}, "gpus": 4}
PLATFORM = {
    "cluster": LAB,
    "gpu": {"resource": "amd.com/gpu"},
    "vcluster": {"version": "v0.34.7", "access": {"type": "NodePort", "host": "10.0.0.1"}},
    "guard": {"mode": "audit"},
    "labels": {"cost": "42"},
    "isolation": {"level": "restricted"},
    "teamStacks": {"vision": GRANT},
}
QUEUES = {"top": {"children": {"mine": {}}}}
HOST = {"cluster": LAB, "kai": {"version": "v0.16.8"}, "queues": QUEUES}
TEAM = {"name": "vision", "scheduler": {"mode": "default"}}


def facts(platform=PLATFORM):
    """As the team's stack reads them from the platform's outputs, which know floats only."""
    output = Facts.of(load(platform).settings).output()
    for grant in output["teams"].values():
        grant["gpus"] = float(grant["gpus"])
    return Facts.read({**output, "later": {"key": 1}})


def loaded(on=PLATFORM, **raw):
    return load_team_stack(
        {"platform": {"stack": "prod"}, "team": TEAM, **raw}, lambda _: facts(on)
    )


def mistakes(on=PLATFORM, **raw):
    return {m.path: m.message for m in loaded(on, **raw).mistakes}


def test_a_team_stack_is_an_ordinary_stack_with_one_team_in_its_granted_place():
    found = loaded(team={**TEAM, "vcluster": {"kubernetesVersion": "v1.34.4"}})
    assert found.mistakes == ()
    own = found.settings
    assert (own.cluster.name, own.cluster.context, own.platform_stack) == ("lab", "lab", "prod")
    assert (own.gpu.resource, own.gpu.provider, own.guard.mode) == ("amd.com/gpu", "none", "audit")
    vcluster, team = own.teams["vision"].vcluster, own.teams["vision"]
    assert (vcluster.version, vcluster.kubernetes_version) == ("v0.34.7", "v1.34.4")
    assert vcluster.access.host == "10.0.0.1"
    assert (team.node_pool, own.team_or_grant("vision").gpus_with_slices) == ({"pool": "vision"}, 4)
    assert (team.isolation.level, team.labels) == ("restricted", {"cost": "42"})
    assert own.team_path("vision") == "kai-fleet:team"


def test_its_own_credentials_go_before_the_platforms():
    assert loaded(cluster={"context": "vision"}).settings.cluster.context == "vision"
    own = loaded(cluster={"kubeconfig": "TOP-SECRET"})
    assert own.mistakes == ()
    assert own.settings.cluster.context is None
    assert "TOP-SECRET" not in repr(own)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"gpu": {}}, "gpu"),
        ({"guard": {"mode": "off"}}, "guard"),
        ({"team": {**TEAM, "gpus": 400}}, "team.gpus"),
        ({"team": {**TEAM, "isolation": {"level": "off"}}}, "team.isolation"),
    ],
)
def test_what_the_platform_says_or_grants_is_refused_in_the_teams_file(keys, path):
    found = loaded(**keys)
    assert [m.path for m in found.mistakes] == [f"kai-fleet:{path}"]
    assert found.mistakes[0].cause == "is an unknown key"
    own = found.settings
    assert (
        own.team_or_grant("vision").gpus_with_slices,
        own.team_or_grant("vision").isolation.level,
    ) == (4, "restricted")


def test_what_is_missing_or_wrong_is_named_with_its_key():
    assert "is missing; write stack: prod" in mistakes(platform={})["kai-fleet:platform.stack"]
    found = load_team_stack({"platform": {"stack": "prod"}}, lambda _: facts()).mistakes
    assert [m.path for m in found] == ["kai-fleet:team"]
    found = mistakes(team={**TEAM, "registrys": {}, "scheduler": {"mode": "virtual"}})
    assert found["kai-fleet:team.registrys"] == "is an unknown key; write registries"
    assert "kai-fleet:team.scheduler.version" in found
    assert "kai-fleet:cluster.name" in mistakes(cluster={"name": "x", "context": "x"})
    assert "is a team still" in mistakes(removed=["vision"])["kai-fleet:removed"]
    both = mistakes(cluster={"context": "x", "kubeconfig": "y"})
    assert "only one of them" in both["kai-fleet:cluster.context"]


@pytest.mark.parametrize(
    ("platform", "team", "key", "says"),
    [
        (PLATFORM, {"name": "nlp"}, "name", "is not granted by stack prod, which grants vision;"),
        (PLATFORM, {"scheduler": {"mode": "host"}}, "scheduler.mode", "grants the team no queue"),
        (
            HOST | {"teamStacks": {"vision": {"gpus": 4, "parentQueue": "mine"}}},
            {"scheduler": {"mode": "host"}, "queue": "top"},
            "queue",
            "is top, and stack prod grants mine",
        ),
    ],
)
def test_what_is_not_granted_is_refused(platform, team, key, says):
    found = mistakes(platform, team={**TEAM, **team})
    assert says in found[f"kai-fleet:team.{key}"]


def test_a_platform_with_a_secret_kubeconfig_hands_nothing_out():
    secret = {**PLATFORM, "cluster": {"name": "lab", "kubeconfig": "TOP-SECRET"}}
    assert "TOP-SECRET" not in str(facts(secret).output())
    assert "is needed, or kubeconfig" in mistakes(secret)["kai-fleet:cluster.context"]


@pytest.mark.parametrize(
    ("stack", "text", "says"),
    [
        ("nosuch", None, "is not there"),
        ("team", "config:\n  kai-fleet:platform: {}\n", "is wrong or a team stack's"),
        ("bad", "config:\n  kai-fleet:gpu: {}\n", "fleet plan --stack bad"),
        ("org/other/prod", None, "of another project"),
    ],
)
def test_a_platform_file_that_does_not_do_is_one_sentence(tmp_path, stack, text, says):
    if text:
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(text)
    with pytest.raises(NoPlatformError, match=says):
        facts_beside(tmp_path / "Pulumi.vision.yaml")(stack)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (RuntimeError("unknown stack 'x'"), r"cannot be read \(unknown stack 'x'\); update it fi"),
        ({}, "exports no platform; update it first: make up STACK=prod"),
        ({"platform": 3}, "update the platform stack with this version first"),
    ],
)
def test_a_platform_that_was_never_updated_or_is_none(monkeypatch, answer, says):
    """What the engine answers; the engine tests see it happen."""

    def invoke(token, args):
        if isinstance(answer, Exception):
            raise answer
        return type("Answer", (), {"value": {"outputs": answer}})

    monkeypatch.setattr("kai_fleet.ownership.deployed.full_name", "organization/lab/{}".format)
    monkeypatch.setattr("kai_fleet_stack.settings.team_stack.invoke", invoke)
    with pytest.raises(NoPlatformError, match=says):
        read_platform("prod")


def test_a_shard_is_checked_where_the_team_has_its_own_kai_and_refused_below_the_granted_queue():
    own = {"mode": "virtual", "version": "v0.16.8"}
    team = {**TEAM, "scheduler": own, "queues": {"a": {"shard": "gold"}}}
    assert "write one of default" in mistakes(team=team)["kai-fleet:team.queues.a.shard"]
    own |= {"shards": {"gold": {}}}
    assert mistakes(team=team) == {}
    host = {
        **HOST,
        "kai": {"version": "v0.16.8", "shards": {"gold": {}}},
        "queues": {"top": {"shard": "gold", "children": {"mine": {}}}},
        "teamStacks": {"vision": {"parentQueue": "mine"}},
    }
    team = {"name": "vision", "scheduler": {"mode": "host"}, "queues": {"vision-a": {}}}
    sharded = {**team, "queues": {"vision-a": {"shard": "gold"}}}
    (found,) = loaded(host, team=sharded).mistakes
    assert found.path == "kai-fleet:team.queues.vision-a.shard" and "drop it" in found.fix
    below = loaded(host, team=team).settings
    host_cluster, *_ = clusters_of(below)
    (own,) = (queue for queue in host_cluster.queues if queue.name == "vision-a")
    assert (own.parent, own.shard) == ("mine", "gold")
