"""What a team stack declares, beside what its platform declares: no engine, no cluster."""

import pulumi
import pytest
import yaml

from kai_fleet.isolation.policies import content
from kai_fleet.isolation.rights import team_stack_on_host
from kai_fleet_cli.diff.changes import difference
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_cli.plan.recorder import record
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
VISION = {
    "scheduler": {"mode": "virtual", "version": "v0.9.3"},
    "nodePool": {"pool": "vision"},
    "gpus": 4,
    "queues": {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}}}},
}
FOUR = {**UNLIMITED, "gpu": {"quota": 4}}
NLP = {"scheduler": {"mode": "host"}, "queues": {"nlp-a": FOUR}}
GRANTS = {"vision": {"nodePool": {"pool": "vision"}, "gpus": 4}}
LAB = {"cluster": {"name": "lab", "context": "lab"}, "vcluster": {"access": {"type": "ClusterIP"}}}
HOST = {
    **LAB,
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"mine": UNLIMITED}}},
    "teamStacks": {"nlp": {"gpus": 4, "parentQueue": "mine"}},
}


def own_file(name, team, **more):
    own = {key: value for key, value in team.items() if key not in ("nodePool", "gpus")}
    return {"platform": {"stack": "lab"}, "team": {"name": name, **own}, **more}


def team_stack(name, team, platform, **more):
    raw = own_file(name, team, **more)
    return record(f"lab-{name}", raw, Facts.of(load(platform).settings).output())


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
            if ("kai-fleet:index:Team$" in item.urn or "kai-fleet:index:Team::" in item.urn)
            and "TeamNamespace" not in item.urn  # which is the platform's
        }

    there = of_team(record("lab", {**LAB, "teams": {"vision": VISION}}))
    here = of_team(own)
    for inputs, _ in (*there.values(), *here.values()):
        place = inputs.get("environment", {}).pop("PROBE_PLACE", "")  # for messages
        assert place in ("", "kai-fleet:teams.vision", "kai-fleet:team")
    assert there == here
    assert len(there) > 15


def test_a_team_stack_declares_nothing_of_the_platforms(own):
    kinds = {item.type for item in own if "kai-fleet:index:Team" not in item.urn}
    assert kinds == {
        "pulumi:providers:kai-fleet",
        "pulumi:providers:kubernetes",
        "pulumi:pulumi:StackReference",
    }


def test_a_change_of_the_platform_shows_in_the_plans_of_its_team_stacks(tmp_path):
    platform, team = tmp_path / "Pulumi.lab.yaml", tmp_path / "Pulumi.lab-vision.yaml"

    def planned(**changes):
        of_platform = {**LAB, "teamStacks": GRANTS, **changes}
        of_team = own_file("vision", VISION)
        for file, raw in ((platform, of_platform), (team, of_team)):
            config = {f"kai-fleet:{key}": value for key, value in raw.items()}
            file.write_text(yaml.safe_dump({"config": config}))
        return plan("lab-vision", team)

    changed = difference(planned().resources, planned(guard={"mode": "audit"}).resources)
    names = ["vision-guard-binding", "vision-guard-outside-binding", "vision-guard-policy"]
    names.append("vision-guard-specs-binding")
    assert sorted(change.name for change in changed) == names
    without = planned(teamStacks={})
    (refusal,) = (p for p in without.problems if p.level is Level.MANDATORY)
    assert refusal.path == "kai-fleet:team.name" and "is not granted by" in refusal.message


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
    assert ("ValidatingAdmissionPolicy", "nlp-guard-policy") not in found, "it is the platform's"
    # What the policy pack sees: the parent is another stack's, and no mistake.
    problems = rules.check(from_resources.clusters(as_declared(resources)))
    assert [str(p) for p in problems if p.level is Level.MANDATORY] == []


@pytest.mark.parametrize("shard", ["gold", "default", None])
def test_in_host_mode_its_queues_are_of_the_granted_ones_shard(shard):
    top = {**UNLIMITED, "children": {"mine": UNLIMITED}} | ({"shard": shard} if shard else {})
    kai = {"version": "v0.16.8", "shards": {"gold": {}}}
    below = {"nlp-a": {**FOUR, "children": {"nlp-b": FOUR}}}
    found = by_name(
        team_stack("nlp", {**NLP, "queues": below}, {**HOST, "kai": kai, "queues": {"top": top}})
    )
    label = {"kai.scheduler/node-pool": "gold"}
    tree = found[("Queues", "nlp-queues")].inputs
    assert tree.get("labels") == ({"nlp-a": label, "nlp-b": label} if shard == "gold" else None)


def test_each_grant_gets_an_account_and_a_namespace_that_is_bounded_before_it_has_rights():
    found = by_name(record("lab", {**LAB, "teamStacks": GRANTS}))
    account = found[("ServiceAccount", "host-team-stacks-vision-account")]
    assert account.inputs["metadata"] == {"name": "vision", "namespace": "kai-fleet-team-stacks"}
    rights = found[("RoleBinding", "vision-account-rights")].inputs
    assert rights["metadata"]["namespace"] == "team-vision"
    assert rights["roleRef"]["name"] == "kai-fleet-team-stack"
    notes = found[("Namespace", "vision-namespace")].inputs["metadata"]["annotations"]
    assert notes["guard.kai-fleet/devices"] == "nvidia.com/gpu"
    assert ("ValidatingAdmissionPolicyBinding", "vision-host-guard-nodes-binding") in found
    assert not [name for kind, name in found if kind == "Secret"], "no token is made"


def test_on_a_host_with_kai_the_platform_holds_the_queues_of_a_team_stack():
    found = by_name(record("lab", HOST))
    notes = found[("Namespace", "nlp-namespace")].inputs["metadata"]["annotations"]
    assert notes["guard.kai-fleet/queues"] == "mine"
    assert notes["guard.kai-fleet/queuePrefix"] == "nlp-"
    tree = found[("Queues", "host-queues")].inputs["queues"]
    assert tree["mine"]["resources"]["gpu"]["limit"] == 4, "fractions count against nothing else"
    bounds = found[("ValidatingAdmissionPolicy", "host-team-stacks-nlp-bounds")].inputs["spec"]
    (condition,) = bounds["matchConditions"]
    assert "'system:serviceaccount:kai-fleet-team-stacks:nlp'" in condition["expression"]
    assert "'guard.kai-fleet/parentQueue': 'mine'" in str(bounds["variables"])


@pytest.mark.parametrize("host_mode", [False, True])
def test_no_account_makes_anything_without_a_namespace_but_its_queues(host_mode):
    for rule in team_stack_on_host("vision", host_mode=host_mode):
        reads = set(rule["verbs"]) <= {"get", "list", "watch"}
        assert reads or (host_mode and rule["resources"] == ["queues"])
    inside = content("rights")["team_stack_in_namespace"]
    for rule in [*team_stack_on_host("vision", host_mode=host_mode), *inside]:
        assert not {"escalate", "bind", "impersonate", "*"} & {*rule["verbs"], *rule["resources"]}
    held = {"resourcequotas", "limitranges", "networkpolicies", "namespaces"}
    for rule in inside:
        if held & set(rule["resources"]):
            assert set(rule["verbs"]) <= {"get", "list", "watch"}


VALUES = {"controlPlane": {"statefulSet": {"labels": {"a": "of-the-chart"}}}}


def chart_values(team, platform):
    """What a team stack gives the charts that it installs, as a plan shows it."""
    found = team_stack("vision", {**VISION, **team}, {**platform, "teamStacks": GRANTS})
    return str([item.inputs for item in found if item.type.endswith(":Release")])


@pytest.mark.parametrize("names", [["platform"], []])
def test_encrypted_chart_values_of_its_platform_are_secrets(monkeypatch, names):
    """The engine's answer to an invoke has them in clear, and names the outputs that are secret."""
    ask = pulumi.runtime.invoke

    def answer(token, args):
        answered = ask(token, args)
        answered.value["secretOutputNames"] = names
        return answered

    monkeypatch.setattr("kai_fleet_stack.settings.team_stack.invoke", answer)
    platform = {**LAB, "vcluster": {**LAB["vcluster"], "values": VALUES}}
    assert ("of-the-chart" in chart_values({}, platform)) == (not names)
