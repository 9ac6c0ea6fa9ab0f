"""The pack as the engine drives it, without its constructor, which never returns."""

import os
import subprocess
import time
from dataclasses import replace

import grpc
import jsonschema
import pytest
from google.protobuf import json_format, struct_pb2
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime import proto, rpc
from pulumi.runtime.proto import analyzer_pb2_grpc
from pulumi_policy import proxy
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from kai_fleet.marks import UNKNOWN, UNKNOWN_TEXTS
from kai_fleet_policies import policy_pack_program
from kai_fleet_policies.adapters.keys import with_keys
from kai_fleet_policies.pack.analyzer import POLICIES, UNDECIDED, Analyzer
from kai_fleet_policies.rules import RULES
from tests.unit.policies.samples import PROVIDER, resource

pytestmark = pytest.mark.texts("rules")

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
QUEUE = "kubernetes:scheduling.run.ai/v2:Queue"
FREE = {r: {"quota": -1, "limit": -1} for r in ("cpu", "memory", "gpu")}


@pytest.fixture
def analyzer():
    return Analyzer()


def queue(name, parent=None):
    spec = {"resources": FREE} | ({"parentQueue": parent} if parent else {})
    return resource(QUEUE, name, {"metadata": {"name": name}, "spec": spec}, "ml")


def pod(name, labels, annotations=None, namespace="team"):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
    props = {"metadata": metadata | {"annotations": annotations or {}}, "spec": spec}
    return resource("kubernetes:core/v1:Pod", name, props, "ml")


def request(*resources):
    """The stack as the engine sends it."""
    sent = [
        proto.AnalyzerResource(
            urn=r.urn,
            type=r.type,
            name=r.name,
            properties=json_format.ParseDict(r.props, struct_pb2.Struct()),
            provider=proto.AnalyzerProviderResource(
                urn=PROVIDER.format("ml"),
                name="ml",
                type="pulumi:providers:kubernetes",
                properties=struct_pb2.Struct(),
            ),
        )
        for r in resources
    ]
    return proto.AnalyzeStackRequest(resources=sent)


def reported(analyzer, *resources):
    response = analyzer.AnalyzeStack(request(*resources), None)
    return [(d.policyName, d.enforcementLevel, d.urn, d.message) for d in response.diagnostics]


TREE = (queue("default"), queue("test", "default"))
IN_TEST, IN_PARENT = ({"kai.scheduler/queue": name} for name in ("test", "default"))


def test_analyzer_info_has_each_rule_at_its_level(analyzer):
    info = analyzer.GetAnalyzerInfo(None, None)
    levels = {p.name: p.enforcementLevel for p in info.policies}
    assert set(levels) == {rule.name for rule in RULES} | {UNDECIDED}
    assert levels["workload-leaf-queue"] == proto.MANDATORY
    assert levels["queue-zero-quota"] == levels["kai-version-supported"] == proto.ADVISORY
    assert all(p.remediation_steps for p in info.policies if p.name != UNDECIDED)


def test_analyze_stack_names_resource_and_remedy(analyzer, texts):
    bad = pod("a", IN_PARENT)
    ((policy, level, urn, message),) = reported(analyzer, *TREE, bad)
    assert (policy, level, urn) == ("workload-leaf-queue", proto.MANDATORY, bad.urn)
    texts(message)


CONFIG = {
    "kai-fleet:teams": '{"ml": {}, "ml-2": {}}',
    "kai-fleet:teamStacks": '{"nlp": {"gpus": 2}}',
    "kai-fleet:gpu": "no JSON",
}


@pytest.mark.parametrize(
    ("types", "name", "key"),
    [
        ("Team$kubernetes:core/v1:Pod", "ml/default/a", "kai-fleet:teams.ml"),
        ("Team$kubernetes:core/v1:Pod", "ml-2-a", "kai-fleet:teams.ml-2"),
        ("TeamNamespace$kubernetes:core/v1:Pod", "nlp-a", "kai-fleet:teamStacks.nlp"),
        ("KaiScheduler$kubernetes:core/v1:Pod", "host-kai-a", "kai-fleet:kai"),
    ],
)
def test_analyze_stack_names_the_key_of_the_stacks_file(analyzer, types, name, key):
    bad = replace(
        pod("a", IN_PARENT), urn=f"urn:pulumi:lab::kai-fleet::kai-fleet:index:{types}::{name}"
    )
    for project, lead in (("kai-fleet", f"{key}: Pod a in"), ("other", "Pod a in")):
        asked = proto.AnalyzerStackConfigureRequest(stack="lab", project=project, config=CONFIG)
        analyzer.ConfigureStack(asked, None)
        ((_, _, urn, message),) = reported(analyzer, *TREE, bad)
        assert urn == bad.urn
        assert message.partition("\n")[2].startswith(lead)


def test_with_keys_replaces_urns():
    urn = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team$a:b:C::ml-release"
    text = f"raise {urn}.gpus; or see {urn.replace('ml-', 'x-')}"
    assert with_keys(text, {"ml": "kai-fleet:teams.ml"}) == (
        f"raise kai-fleet:teams.ml; or see {urn.replace('ml-', 'x-')}"
    )


@pytest.mark.parametrize(
    ("types", "name", "key"),
    [
        ("GpuStack$a:b:C", "host-gpu-release", "kai-fleet:gpu"),
        ("QueueTree$a:b:C", "host-queues", "kai-fleet:queues"),
        (
            "Team$kai-fleet:index:TeamNamespace$a:b:C",
            "host-gpu-namespace",
            "kai-fleet:teams.host-gpu",
        ),
        ("Team$a:b:C", "host-queues-queues", "kai-fleet:teams.host-queues"),
    ],
)
def test_with_keys_tells_a_team_from_what_the_host_has_under_its_name(types, name, key):
    teams = {team: f"kai-fleet:teams.{team}" for team in ("host-gpu", "host-queues")}
    urn = f"urn:pulumi:lab::kai-fleet::kai-fleet:index:{types}::{name}"
    assert with_keys(f"see {urn}", teams) == f"see {key}"
    own = "urn:pulumi:lab::kai-fleet::kai-fleet:index:KaiScheduler$a:b:C::ml-own"
    assert with_keys(own, {"ml": "kai-fleet:teams.ml"}) == own


def test_analyze_stack_an_unknown_value_leaves_every_other_verdict_standing(analyzer):
    bad = pod("a", IN_PARENT, {"gpu-fraction": UNKNOWN_STRING_VALUE})
    unknown = pod("b", {"kai.scheduler/queue": UNKNOWN_STRING_VALUE}, {"gpu-fraction": "2"})
    result = reported(analyzer, *TREE, bad, unknown, pod("c", UNKNOWN_OBJECT_VALUE))
    mandatory = {(p, urn) for p, level, urn, _ in result if level == proto.MANDATORY}
    assert mandatory == {("workload-leaf-queue", bad.urn), ("workload-gpu-request", unknown.urn)}
    rest = [(p, urn) for p, level, urn, _ in result if level == proto.ADVISORY]
    assert {p for p, _ in rest} == {UNDECIDED}
    # The one without a resource: no KAI is declared, so nobody knows whether GPU sharing is on.
    assert {urn.rpartition("::")[2] for _, urn in rest} == {"a", "b", "c", ""}
    assert not any("can't run policy" in message for *_, message in result)


def test_analyze_stack_masks_a_secret(analyzer, texts):
    bad = pod("a", {"kai.scheduler/queue": {**SECRET, "value": "s3cr3t"}})
    ((policy, *_, message),) = reported(analyzer, *TREE, bad)
    assert policy == "workload-leaf-queue"
    assert "[secret]" in message and "s3cr3t" not in message
    texts(message)


def configured(level="MANDATORY", rules=("workload-leaf-queue",), **properties):
    """An analyzer with the configuration that `--policy-pack-config` gives it for some rules."""
    created, own = Analyzer(), proto.PolicyConfig(enforcementLevel=getattr(proto, level))
    json_format.ParseDict(properties, own.properties)
    created.Configure(proto.ConfigureAnalyzerRequest(policyConfig=dict.fromkeys(rules, own)), None)
    return created


def test_configure_exempts_a_namespace_from_one_rule():
    wrong = pod("a", IN_PARENT, {"gpu-fraction": "2"}, namespace="lab")
    found = reported(configured(exemptNamespaces=["lab"]), *TREE, wrong, pod("b", IN_PARENT))
    mandatory = {(rule, urn[-1]) for rule, level, urn, _ in found if level == proto.MANDATORY}
    assert mandatory == {("workload-gpu-request", "a"), ("workload-leaf-queue", "b")}


def test_configure_queues_of_other_programs_are_an_open_question_else(texts):
    below = queue("team-a", "default-parent-queue")
    ((rule, level, urn, message),) = reported(Analyzer(), below)
    assert (rule, level, urn) == (UNDECIDED, proto.ADVISORY, below.urn)
    texts(message)
    rules, every = ("queue-tree", "workload-leaf-queue"), ["default-parent-queue", "default-queue"]
    analyzer = configured(rules=rules, existingQueues=every)
    assert reported(analyzer, below, pod("a", {"kai.scheduler/queue": "default-queue"})) == []


def test_configure_lowers_a_rule_and_a_disabled_one_asks_no_open_questions():
    ((_, level, _, _),) = reported(configured("ADVISORY"), *TREE, pod("a", IN_PARENT))
    assert level == proto.ADVISORY
    stack = (*TREE, pod("a", {"kai.scheduler/queue": UNKNOWN_STRING_VALUE}))
    assert [rule for rule, *_ in reported(Analyzer(), *stack)] == [UNDECIDED]
    assert reported(configured("DISABLED"), *stack) == []


def test_config_schema_refuses_what_nobody_can_mean():
    served = {policy.name: json_format.MessageToDict(policy) for policy in POLICIES}
    properties = {"type": "object", **served["workload-leaf-queue"]["configSchema"]}
    jsonschema.validate({"exemptNamespaces": ["lab"]}, properties)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"exemptNamespaces": "lab"}, properties)


def test_policy_pack_program_serves_the_engine(tmp_path):
    """It prints the port on which it serves the engine, and then serves until it is ended."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [str(policy_pack_program()), "127.0.0.1:1"]
    started = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, bufsize=0)
    try:
        port = int(started.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            served = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(Empty())
        assert [policy.name for policy in served.policies] == [policy.name for policy in POLICIES]
    finally:
        started.kill()
        started.communicate()


def test_analyze_stack_a_large_one_takes_under_two_seconds(analyzer):
    queues = [queue(f"q{n}", "default") for n in range(800)]
    pods = [pod(f"p{n}", IN_TEST, {"gpu-fraction": "0.5"}) for n in range(2000)]
    sent = request(*TREE, *queues, *pods)
    begin = time.process_time()
    response = analyzer.AnalyzeStack(sent, None)
    assert {d.policyName for d in response.diagnostics} == {UNDECIDED}
    assert time.process_time() - begin < 2


def test_unknown_texts_are_those_of_the_sdk():
    names = {value for name, value in vars(proxy).items() if name.startswith("UNKNOWN_")}
    assert names == UNKNOWN_TEXTS
    assert rpc.UNKNOWN == UNKNOWN
