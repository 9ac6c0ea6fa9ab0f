"""What the program declares for the guard, and when."""

import re

import pytest
from kai_fleet.components.guard.queue_guard_rules import (
    match_conditions,
    text,
    validations,
    variables,
)

from kai_fleet.cli.plan.recorder import record
from kai_fleet.components.kai.keys import QUEUE_LABEL, look_alike_pattern, meant, right_key

CLUSTER = {"name": "lab", "context": "lab"}
FREE = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
TREE = {"top": {**FREE, "children": {"train": FREE, "serve": FREE}}}
ML = {"scheduler": {"mode": "virtual", "version": "v0.9.3"}, "nodePool": {"pool": "ml"}}
QUEUES = {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}, "serve": {}}}}
VIRTUAL = {"teams": {"ml": {**ML, "gpus": 4, "queues": QUEUES}}}
HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": TREE,
    "teams": {"nlp": {"scheduler": {"mode": "host"}, "queue": "serve", "gpus": 1}},
}


def of_version(version):
    scheduler = {**ML["scheduler"], "version": version}
    return {"teams": {"ml": {**ML, "scheduler": scheduler, "gpus": 4, "queues": QUEUES}}}


PREFIXES = ("kai.scheduler", "kai-scheduler", "runai", "run.ai", "scheduling.run.ai")
POLICY = "ValidatingAdmissionPolicy"


def declared(**settings):
    found = record("lab", {"cluster": CLUSTER, **settings})
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def queues_of(found):
    return next(each["expression"] for each in found if each["name"] == "queues")


def queues(policy):
    return queues_of(policy.inputs["spec"]["variables"])


def test_in_virtual_mode_it_is_inside_the_vcluster_for_every_namespace():
    found = declared(**VIRTUAL)
    policy, binding = (
        found[(POLICY, "ml-guard-policy")],
        found[(f"{POLICY}Binding", "ml-guard-binding")],
    )
    inside = next(i for i in found.values() if i.urn.endswith("kubernetes::ml"))
    assert policy.provider == binding.provider == inside.urn
    assert queues(policy) == "['serve', 'train']"
    assert policy.inputs["spec"]["failurePolicy"] == "Fail"
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    assert binding.inputs["spec"] == {
        "policyName": policy.inputs["metadata"]["name"],
        "validationActions": ["Deny"],
        "matchResources": {"resourceRules": [{**pods, "operations": ["CREATE", "UPDATE"]}]},
    }


def kinds(binding):
    rules = binding.inputs["spec"]["matchResources"]["resourceRules"]
    return {kind for rule in rules for kind in rule["resources"]}


@pytest.mark.parametrize(
    ("team", "guard", "where"),
    [
        (VIRTUAL, "ml-guard", None),
        (HOST, "nlp-queue-guard", {"kubernetes.io/metadata.name": "team-nlp"}),
    ],
)
def test_templates_of_pods_are_judged_by_the_same_policy_and_only_warned_about(team, guard, where):
    found = declared(**team)
    policy = found[(POLICY, f"{guard}-policy")]
    binding = found[(f"{POLICY}Binding", f"{guard}-templates-binding")]
    spec = binding.inputs["spec"]
    assert spec["policyName"] == policy.inputs["metadata"]["name"]
    assert spec["validationActions"] == ["Warn"]
    assert kinds(binding) == {"deployments", "statefulsets", "replicasets", "jobs", "cronjobs"}
    selector = spec["matchResources"].get("namespaceSelector", {})
    assert selector.get("matchLabels") == where


def test_in_host_mode_it_is_on_the_host_for_the_teams_namespace():
    found = declared(**HOST)
    policy, binding = (
        found[(POLICY, "nlp-queue-guard-policy")],
        found[(f"{POLICY}Binding", "nlp-queue-guard-binding")],
    )
    assert policy.provider.endswith("kubernetes::host")
    assert queues(policy) == "['serve']"
    selector = binding.inputs["spec"]["matchResources"]["namespaceSelector"]
    namespace = found[("Namespace", "nlp-namespace")].inputs["metadata"]["name"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def of_queues(item):
    return item.inputs.get("metadata", {}).get("name", "").startswith("kai-fleet-queues-")


@pytest.mark.parametrize("team", [VIRTUAL, HOST])
def test_audit_warns_and_off_declares_nothing(team):
    audit = declared(guard={"mode": "audit"}, **team)
    (binding,) = [
        i for (kind, _), i in audit.items() if kind == f"{POLICY}Binding" and of_queues(i)
    ]
    assert binding.inputs["spec"]["validationActions"] == ["Audit", "Warn"]
    off = declared(guard={"mode": "off"}, **team)
    assert not [i for (kind, _), i in off.items() if kind.startswith(POLICY) and of_queues(i)]


def test_a_team_without_kai_has_none():
    dev = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}}
    found = declared(teams={"dev": dev})
    assert not [i for (kind, _), i in found.items() if kind.startswith(POLICY) and of_queues(i)]


def test_shares_are_denied_where_sharing_is_off():
    def messages(sharing):
        return " ".join(v["messageExpression"] for v in validations("ml", ["a"], sharing))

    assert "GPU sharing is off" in messages(False)
    assert "GPU sharing is off" not in messages(True)


@pytest.mark.parametrize(
    ("settings", "policy", "passes"),
    [
        (of_version("v0.16.8"), "ml-guard-policy", True),
        (of_version("v0.17.0"), "ml-guard-policy", True),
        (of_version("v0.15.3"), "ml-guard-policy", True),
        (of_version("v0.14.7"), "ml-guard-policy", False),
        (of_version("v0.9.3"), "ml-guard-policy", False),
        (HOST, "nlp-queue-guard-policy", False),
    ],
)
def test_a_pod_group_stands_for_a_queue_where_kai_reads_it_and_all_queues_are_the_teams(
    settings, policy, passes
):
    said = declared(**settings)[(POLICY, policy)].inputs["spec"]["validations"]
    assert any("pod-group-name" in each["expression"] for each in said) == passes


def test_a_name_cannot_leave_its_quotes():
    assert text("a' || true || 'b\\") == "'a\\' || true || \\'b\\\\'"
    assert queues_of(variables(["it's"])) == "['it\\'s']"


def test_the_guard_looks_for_what_the_rule_calls_wrong():
    names = [*meant(), "node-pool", "topology"]
    written = [f"{prefix}/{name}" for prefix in (*PREFIXES, "my.org") for name in names]
    bare = [name.replace("-", "_") for name in names]
    pattern = re.compile(look_alike_pattern())
    for key in (*written, *bare, *names, "app", f"x{QUEUE_LABEL}"):
        right = right_key(key)
        wrong = right is not None and right != key and right in meant().values()
        assert bool(pattern.search(key)) == (wrong or key == QUEUE_LABEL), key
        if wrong:  # the message looks up what stands behind the prefix, `_` being a dash
            assert meant()[key.replace("_", "-").rpartition("/")[2]] == right
    assert all(text(pattern.pattern) in it["expression"] for it in match_conditions())


def test_many_queues_are_counted_in_the_message_and_all_allowed():
    names = [f"q{i}" for i in range(100)]
    assert "(88 more)" in validations("ml", names, True)[3]["messageExpression"]
    assert "'q99'" in queues_of(variables(names))
