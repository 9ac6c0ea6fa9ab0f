"""What a team stack declares, beside what its platform declares: no engine, no cluster."""

from __future__ import annotations

import pytest
import yaml

from components.settings import load
from components.settings.platform_facts import PlatformFacts
from components.team_stack_rights import bounds, on_host
from fleet.diffs.diff import difference
from fleet.picture import as_declared
from fleet.plan import plan
from fleet.recording import record
from policies import declared, rules
from policies.problem import Level
from provider.tokens import QUEUES

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
VISION = {
    "scheduler": {"mode": "virtual", "version": "v0.9.3"},
    "nodePool": {"pool": "vision"},
    "gpus": 4,
    "queues": {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}}}},
}
NLP = {"scheduler": {"mode": "host"}, "gpus": 4, "queues": {"nlp-a": UNLIMITED}}
GRANTS = {"vision": {"nodePool": {"pool": "vision"}, "gpus": 4}}
LAB = {"cluster": {"name": "lab", "context": "lab"}, "vcluster": {"access": {"type": "ClusterIP"}}}
HOST = {
    **LAB,
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"mine": UNLIMITED}}},
    "teamStacks": {"nlp": {"gpus": 4, "parentQueue": "mine"}},
}


def team_stack(name, team, platform, **more):
    raw = {"platform": {"stack": "lab"}, "team": {"name": name, **team}, **more}
    return record(f"lab-{name}", raw, PlatformFacts.of(load(platform).settings).output())


def by_name(resources):
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in resources}


@pytest.fixture(scope="module")
def own():
    return team_stack("vision", VISION, {**LAB, "teamStacks": GRANTS})


def test_a_teams_resources_have_the_same_names_and_inputs_in_either_stack(own):
    def of_team(resources):
        """By URN without the stack's name; a reference to a provider is one to its URN."""
        return {
            item.urn.split("::", 1)[1]: (item.inputs, item.provider.split("::", 1)[-1])
            for item in resources
            if "kai-fleet:index:Team" in item.urn
        }

    there = of_team(record("lab", {**LAB, "teams": {"vision": VISION}}))
    here = of_team(own)
    added = {urn.rpartition("::")[2] for urn in here.keys() - there.keys()}
    assert added == {"vision-rights"}
    assert there.items() <= here.items()
    assert len(there) > 15


def test_the_dependency_on_the_platform_is_declared(own):
    reference = by_name(own)[("StackReference", "platform")]
    assert reference.inputs == {"name": "organization/kai-fleet/lab"}


def test_a_team_stack_declares_nothing_of_the_platforms(own):
    kinds = {item.type for item in own if "Platform" in item.urn}
    assert kinds == {"kai-fleet:index:Platform", "pulumi:providers:kubernetes"}


def test_a_change_of_the_platform_shows_in_the_plans_of_its_team_stacks(tmp_path):
    platform, team = tmp_path / "Pulumi.lab.yaml", tmp_path / "Pulumi.lab-vision.yaml"

    def planned(**changes):
        of_platform = {**LAB, "teamStacks": GRANTS, **changes}
        of_team = {"platform": {"stack": "lab"}, "team": {"name": "vision", **VISION}}
        for file, raw in ((platform, of_platform), (team, of_team)):
            config = {f"kai-fleet:{key}": value for key, value in raw.items()}
            file.write_text(yaml.safe_dump({"config": config}))
        return plan("lab-vision", team).record()

    changed = difference(
        planned()["resources"], planned(guard={"mode": "audit"})["resources"]
    ).changed
    assert [change.name for change in changed] == ["vision-guard-binding"]
    without = planned(teamStacks={})
    refusals = [p["rule"] for p in without["problems"] if p["level"] == "mandatory"]
    assert (without["ok"], refusals) == (False, ["team-granted"])


def test_its_own_credentials_reach_the_platforms_cluster():
    found = team_stack(
        "vision", VISION, {**LAB, "teamStacks": GRANTS}, cluster={"context": "vision"}
    )
    provider = by_name(found)[("kubernetes", "host")]
    assert provider.inputs["clusterIdentifier"] == "lab"
    assert provider.inputs["context"] == "vision"


def test_in_host_mode_its_queues_hang_below_the_granted_one():
    resources = team_stack("nlp", NLP, HOST)
    found = by_name(resources)
    tree = found[("Queues", "nlp-queues")].inputs
    assert tree["queues"]["nlp-a"]["parentQueue"] == "mine"
    assert tree["cluster"] == "lab", "on the host"
    guard = found[("ValidatingAdmissionPolicy", "nlp-guard-policy")].inputs["spec"]
    assert {"name": "queues", "expression": "['nlp-a']"} in guard["variables"]
    # What the policy pack sees: the parent is another stack's, and no mistake.
    problems = rules.check(declared.clusters(as_declared(resources)))
    assert [str(p) for p in problems if p.level is Level.MANDATORY] == []


@pytest.mark.parametrize("shard", ["gold", "default", None])
def test_in_host_mode_its_queues_are_of_the_granted_ones_shard(shard):
    top = {**UNLIMITED, "children": {"mine": UNLIMITED}} | ({"shard": shard} if shard else {})
    kai = {"version": "v0.16.8", "shards": {"gold": {}}}
    below = {"nlp-a": {**UNLIMITED, "children": {"nlp-b": UNLIMITED}}}
    found = by_name(
        team_stack("nlp", {**NLP, "queues": below}, {**HOST, "kai": kai, "queues": {"top": top}})
    )
    label = {"kai.scheduler/node-pool": "gold"}
    tree = found[("Queues", "nlp-queues")].inputs
    assert tree.get("labels") == ({"nlp-a": label, "nlp-b": label} if shard == "gold" else None)


def test_a_queue_below_an_absent_parent_is_still_refused():
    resources = record("lab", HOST)
    tree = next(item for item in resources if item.type == QUEUES)
    del tree.inputs["queues"]["top"]
    problems = rules.check(declared.clusters(as_declared(resources)))
    assert "queue-tree" in {p.rule for p in problems}


def test_each_grant_gets_an_account_bounded_before_it_has_rights():
    found = by_name(record("lab", {**LAB, "teamStacks": GRANTS}))
    account = found[("ServiceAccount", "host-team-stacks-vision-account")]
    assert account.inputs["metadata"] == {"name": "vision", "namespace": "kai-fleet-team-stacks"}
    policy = found[("ValidatingAdmissionPolicy", "host-team-stacks-vision-bounds")].inputs
    assert policy["spec"]["failurePolicy"] == "Fail"
    (condition,) = policy["spec"]["matchConditions"]
    assert "'system:serviceaccount:kai-fleet-team-stacks:vision'" in condition["expression"]
    assert not [name for kind, name in found if kind == "Secret"], "no token is made"


@pytest.mark.parametrize("host_mode", [False, True])
def test_no_account_may_escalate_or_write_what_is_not_named(host_mode):
    bounded = {
        v["expression"].split("'")[1]
        for v in bounds("vision", gpus=4, gpu_resource="nvidia.com/gpu", parent_queue=None)
    }
    for rule in on_host("vision", host_mode=host_mode):
        assert not {"escalate", "impersonate", "*"} & {*rule["verbs"], *rule["resources"]}
        if set(rule["verbs"]) <= {"get", "list", "watch"} or "resource_names" in rule:
            continue
        unbounded = set(rule["resources"]) - bounded
        # In host mode the chart and the guard need these; docs/team-stacks.md says so.
        assert unbounded <= (
            {
                "priorityclasses",
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings",
            }
            if host_mode
            else set()
        )
