"""A team stack's file: its keys, what it takes from the platform, and what it may not have."""

import pytest

from kai_fleet.fleet.resolve import fleet_of, platform_facts
from kai_fleet.settings import load
from kai_fleet.settings.sections.team_stack import NoPlatformError, PlatformFacts
from kai_fleet.settings.tenant import load_tenant
from kai_fleet_cli.stack_file.platform import facts_beside

PLATFORM = {
    "cluster": {"name": "lab", "context": "lab"},
    "gpu": {"resource": "amd.com/gpu"},
    "vcluster": {"version": "v0.34.7", "access": {"type": "NodePort", "host": "10.0.0.1"}},
    "guard": {"mode": "audit"},
    "teamStacks": {"vision": {"nodePool": {"pool": "vision"}, "gpus": 4}},
}
TEAM = {"name": "vision", "scheduler": {"mode": "default"}, "nodePool": {"pool": "vision"}}
RAW = {"platform": {"stack": "prod"}, "team": TEAM}


def facts(platform=PLATFORM):
    return platform_facts(load(platform).settings)


def loaded(on=PLATFORM, **raw):
    return load_tenant({**RAW, **raw}, lambda _: facts(on))


def mistakes(**raw):
    return {m.path: m.message for m in loaded(**raw).mistakes}


def test_a_team_stack_has_the_platforms_settings_and_its_own_team():
    tenant = loaded(team={**TEAM, "vcluster": {"kubernetesVersion": "v1.34.4"}}).settings
    assert (tenant.cluster.name, tenant.cluster.context) == ("lab", "lab")
    assert tenant.gpu.resource == "amd.com/gpu"
    assert tenant.gpu.provider == "none"
    assert tenant.guard.mode == "audit"
    vcluster = tenant.vcluster_of("vision")
    assert (vcluster.version, vcluster.kubernetes_version) == ("v0.34.7", "v1.34.4")
    assert vcluster.access.host == "10.0.0.1"


def test_its_own_credentials_go_before_the_platforms():
    assert loaded(cluster={"context": "vision"}).settings.cluster.context == "vision"
    own = loaded(cluster={"kubeconfig": "TOP-SECRET"})
    assert own.mistakes == ()
    assert own.settings.cluster.context is None
    assert "TOP-SECRET" not in repr(own)


@pytest.mark.parametrize(
    "key", ["gpu", "kai", "queues", "teams", "vcluster", "teamStacks", "guard"]
)
def test_the_platforms_keys_are_refused_with_their_place(key):
    found = mistakes(**{key: {}})
    assert list(found) == [f"kai-fleet:{key}"]
    assert "belongs to the platform: write it in Pulumi.prod.yaml" in found[f"kai-fleet:{key}"]


@pytest.mark.parametrize("key", ["isolation", "labels", "annotations"])
def test_a_team_does_not_write_what_its_namespace_is_like(key):
    found = mistakes(team={**TEAM, key: {}})
    assert found[f"kai-fleet:team.{key}"] == (
        f"is the platform's; have it written there, in kai-fleet:teamStacks.vision.{key}"
    )


def test_what_is_missing_or_wrong_is_named_with_its_key():
    assert "write the platform's stack: prod" in mistakes(platform={})["kai-fleet:platform.stack"]
    found = load_tenant({"platform": {"stack": "prod"}}, lambda _: facts()).mistakes
    assert [m.path for m in found] == ["kai-fleet:team"]
    found = mistakes(team={**TEAM, "gpu": 4, "scheduler": {"mode": "virtual"}})
    assert found["kai-fleet:team.gpu"] == "is an unknown key; write gpus"
    assert "kai-fleet:team.scheduler.version" in found
    assert (
        "keep context or kubeconfig"
        in mistakes(cluster={"name": "x", "context": "x"})["kai-fleet:cluster.name"]
    )
    named = mistakes(removed=[RAW["team"]["name"]])
    assert "is a team still; take it out of here" in named["kai-fleet:removed"]
    both = mistakes(cluster={"context": "x", "kubeconfig": "y"})
    assert "and not both" in both["kai-fleet:cluster.context"]


def test_a_platform_with_a_secret_kubeconfig_hands_nothing_out():
    secret = {**PLATFORM, "cluster": {"name": "lab", "kubeconfig": "TOP-SECRET"}}
    assert "TOP-SECRET" not in str(facts(secret).output())
    found = {m.path: m.message for m in loaded(secret).mistakes}
    assert "with the team's own credentials" in found["kai-fleet:cluster"]


def test_facts_survive_the_outputs_numbers_and_newer_keys():
    output = facts().output()
    output["teamStacks"]["vision"]["gpus"] = 4.0  # outputs know floats only
    output["later"] = {"key": 1}
    assert PlatformFacts.read(output) == facts()
    with pytest.raises(NoPlatformError, match="update the platform stack with this version first"):
        PlatformFacts.read({"cluster": 3, "isolation": {}})
    with pytest.raises(NoPlatformError, match="makes no namespaces for its team stacks"):
        PlatformFacts.read({"cluster": {"name": "lab"}})


@pytest.mark.parametrize(
    ("stack", "text", "says"),
    [
        ("nosuch", None, "is not there"),
        ("team", "config:\n  kai-fleet:team: {}\n", "is a team stack itself"),
        ("bad", "config:\n  kai-fleet:gpu: {}\n", "fleet plan --stack bad"),
        ("org/other/prod", None, "of another project"),
    ],
)
def test_a_platform_file_that_does_not_do_is_one_sentence(tmp_path, stack, text, says):
    if text:
        (tmp_path / f"Pulumi.{stack}.yaml").write_text(text)
    with pytest.raises(NoPlatformError, match=says):
        facts_beside(tmp_path / "Pulumi.vision.yaml")(stack)


def test_a_team_stack_whose_platform_was_never_updated_or_is_none(monkeypatch):
    """What the engine answers, as read_platform tells it; the engine tests see it happen."""
    from kai_fleet.host.platform import read_platform

    from kai_fleet.host import platform as platform_reading

    answers = {
        "unknown stack 'x'": "there is no such stack; update it first: make up STACK=prod",
        "connection refused": r"cannot be read \(connection refused\)",
    }
    monkeypatch.setattr(platform_reading, "full_name", lambda stack: f"organization/lab/{stack}")
    monkeypatch.setattr(platform_reading.pulumi, "get_stack", lambda: "prod-vision")
    for error, says in answers.items():

        def fail(*_, error=error):
            raise RuntimeError(error)

        monkeypatch.setattr(platform_reading, "invoke", fail)
        with pytest.raises(NoPlatformError, match=says):
            read_platform("prod")
    for outputs, says in (({}, "has never been updated"), ({"a": 1}, "exports no platform")):
        answer = type("Answer", (), {"value": {"outputs": outputs}})
        monkeypatch.setattr(platform_reading, "invoke", lambda *_, answer=answer: answer)
        with pytest.raises(NoPlatformError, match=says):
            read_platform("prod")
    with pytest.raises(NoPlatformError, match="is this stack itself"):
        read_platform("prod-vision")


def test_a_shard_is_checked_where_the_team_has_its_own_kai_and_refused_below_the_granted_queue():
    queue = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")} | {"shard": "gold"}
    own = {"mode": "virtual", "version": "v0.16.8"}
    found = mistakes(team={**TEAM, "scheduler": own, "queues": {"a": queue}})
    assert "write one of default" in found["kai-fleet:team.queues.a.shard"]
    own |= {"shards": {"gold": {}}}
    assert mistakes(team={**TEAM, "scheduler": own, "queues": {"a": queue}}) == {}
    host = {
        "cluster": {"name": "lab", "context": "lab"},
        "kai": {"version": "v0.16.8", "shards": {"gold": {}}},
        "queues": {"mine": queue},
        "teamStacks": {"vision": {"parentQueue": "mine"}},
    }
    team = {"name": "vision", "scheduler": {"mode": "host"}, "queues": {"vision-a": queue}}
    found = {m.path: m.message for m in loaded(host, team=team).mistakes}
    assert list(found) == ["kai-fleet:team.queues.vision-a.shard"]
    assert "drop it" in found["kai-fleet:team.queues.vision-a.shard"]
    del queue["shard"]
    below = loaded(host | {"queues": {"mine": {**queue, "shard": "gold"}}}, team=team).settings
    (own,) = fleet_of(below).teams["vision"].host_queues
    assert (own.name, own.shard) == ("vision-a", "gold")
