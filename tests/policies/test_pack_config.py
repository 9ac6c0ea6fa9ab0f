"""The pack's configuration, through the analyzer that the engine talks to."""

import jsonschema
import pytest
from google.protobuf import json_format
from pulumi.runtime import proto

from kai_fleet_policies.pack.analyzer import POLICIES, UNDECIDED, Analyzer
from tests.policies.test_pack import TREE, pod, queue, said

LEAF = "workload-leaf-queue"


@pytest.fixture
def configured():
    """An analyzer with the configuration that `--policy-pack-config` gives it."""

    def make(**rules):
        made = Analyzer()
        sent = {}
        for rule, properties in rules.items():
            name = rule.replace("_", "-")
            level = getattr(proto, properties.pop("level", "MANDATORY"))
            sent[name] = proto.PolicyConfig(enforcementLevel=level)
            json_format.ParseDict(properties, sent[name].properties)
        made.Configure(proto.ConfigureAnalyzerRequest(policyConfig=sent), None)
        return made

    return make


def rules_said(analyzer, *resources):
    return {(rule, urn.rpartition("::")[2]) for rule, _, urn, _ in said(analyzer, *resources)}


def test_a_namespace_can_be_exempt_from_one_rule(configured):
    analyzer = configured(workload_leaf_queue={"exemptNamespaces": ["lab"]})
    wrong = pod("a", {"kai.scheduler/queue": "default"}, {"gpu-fraction": "2"}, namespace="lab")
    other = pod("b", {"kai.scheduler/queue": "default"}, namespace="team")
    mandatory = {
        (rule, urn.rpartition("::")[2])
        for rule, level, urn, _ in said(analyzer, *TREE, wrong, other)
        if level == proto.MANDATORY
    }
    assert mandatory == {("workload-gpu-request", "a"), (LEAF, "b")}


def test_queues_of_other_programs_are_configured_or_an_open_question(configured):
    below = queue("team-a", "default-parent-queue")
    work = pod("a", {"kai.scheduler/queue": "default-queue"})
    ((rule, level, urn, message),) = said(configured(), below)
    assert (rule, level, urn) == (UNDECIDED, proto.ADVISORY, below.urn)
    assert "existingQueues: [default-parent-queue] in the pack's configuration" in message
    assert "declare default-parent-queue" not in message
    every = {"existingQueues": ["default-parent-queue", "default-queue"]}
    analyzer = configured(queue_tree=dict(every), workload_leaf_queue=dict(every))
    assert rules_said(analyzer, below, work) == set()


def test_a_disabled_rule_asks_no_open_questions_either(configured):
    from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

    stack = (*TREE, pod("a", {"kai.scheduler/queue": UNKNOWN_STRING_VALUE}))
    assert rules_said(configured(), *stack) == {(UNDECIDED, "a")}
    assert rules_said(configured(workload_leaf_queue={"level": "DISABLED"}), *stack) == set()


def test_the_schemas_refuse_what_nobody_can_mean():
    told = {policy.name: json_format.MessageToDict(policy) for policy in POLICIES}
    assert "configSchema" not in told["queue-quota"]
    properties = {"type": "object", **told[LEAF]["configSchema"]}
    jsonschema.validate({"exemptNamespaces": ["lab"]}, properties)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"exemptNamespaces": "lab"}, properties)
