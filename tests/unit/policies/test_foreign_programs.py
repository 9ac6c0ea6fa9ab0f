"""What programs of others declare, however it is written: the pack judges it and never breaks."""

from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime import proto

from kai_fleet.marks import UNKNOWN as NOT_KNOWN
from kai_fleet.provider.values import struct
from kai_fleet_policies.pack.analyzer import Analyzer
from kai_usage.keys import QUEUE_LABEL
from tests.unit.policies.samples import resource
from tests.unit.policies.test_pack import IN_TEST, QUEUE, TREE, pod, reported, request

pytestmark = pytest.mark.texts("rules")

LEAF = "workload-leaf-queue"


def rules(analyzer: Analyzer, *resources: Any) -> set[str]:
    return {rule for rule, level, *_ in reported(analyzer, *resources) if level == proto.MANDATORY}


def deployment(own: dict[str, Any], of_pods: dict[str, Any]):
    metadata = {"name": "api", "namespace": "team", "labels": own}
    props = {"metadata": metadata, "spec": {"template": pod("api", of_pods).props}}
    return resource("kubernetes:apps/v1:Deployment", "api", props, "ml")


@pytest.mark.parametrize("written", [["test"], {"name": "test"}, 1])
@pytest.mark.parametrize("own", [True, False], ids=["on the object", "on its pods"])
def test_workload_known_keys_refuses_a_queue_that_is_no_text(written, own):
    labels = {QUEUE_LABEL: written}
    created = deployment(labels, IN_TEST) if own else deployment({}, labels)
    assert "workload-known-keys" in rules(Analyzer(), *TREE, created)


@pytest.mark.parametrize("amount", ["1e400", "-Infinity", "nan", [], "8Gi"])
def test_analyze_stack_an_amount_that_is_no_number_breaks_nothing(amount):
    props = {"quota": amount, "limit": amount}
    odd = {"resources": {"cpu": props, "memory": props, "gpu": props}, "parentQueue": "default"}
    created = resource(QUEUE, "odd", {"metadata": {"name": "odd"}, "spec": odd}, "ml")
    quota = {"requests.nvidia.com/gpu": amount, "requests.nvidia.com/mig-1g.5gb": amount}
    namespaced = {"name": "gpus", "namespace": "team-ml"}
    bound = {"metadata": namespaced, "spec": {"hard": quota}}
    chart = {"name": "ml", "chart": "vcluster", "version": "0.36.1", "namespace": "team-ml"}
    host = (
        resource("kubernetes:core/v1:ResourceQuota", "gpus", bound),
        resource("kubernetes:helm.sh/v3:Release", "ml", chart),
    )
    sent = request(*TREE, created, *host)
    for item in sent.resources[-2:]:
        item.ClearField("provider")
    assert Analyzer().AnalyzeStack(sent, None).diagnostics


def test_namespace_reserved_pods_are_in_that_of_their_provider(texts):
    """Of a cluster that is not there yet, the provider writes nothing on them in a preview."""
    sent = request(*TREE, pod("a", IN_TEST, namespace=""))

    def diagnostics(namespace: Any) -> Any:
        for item in sent.resources:
            item.provider.properties.CopyFrom(struct({"namespace": namespace}))
        return Analyzer().AnalyzeStack(sent, None).diagnostics

    (reserved,) = diagnostics("kube-system")
    assert reserved.policyName == "namespace-reserved"
    (asked,) = diagnostics(NOT_KNOWN)
    assert asked.enforcementLevel == proto.ADVISORY
    texts(asked.message)


def test_workload_leaf_queue_those_of_another_program_are_the_hosts_too():
    values = {"experimental": {"syncSettings": {"setOwner": False}}}
    chart = {"chart": "vcluster", "version": "0.36.1", "namespace": "team-ml", "values": values}
    vcluster = resource("kubernetes:helm.sh/v3:Release", "ml", {"name": "ml", **chart})
    on_host = [replace(entry, provider="") for entry in TREE]
    created = pod("a", {QUEUE_LABEL: "theirs"})
    analyzer, config = Analyzer(), proto.PolicyConfig(enforcementLevel=proto.MANDATORY)
    sent = request(*on_host, vcluster, created)
    for item in sent.resources[: len(on_host) + 1]:
        item.ClearField("provider")
    refused = [
        diagnostic.policyName for diagnostic in analyzer.AnalyzeStack(sent, None).diagnostics
    ]
    assert LEAF in refused
    json_format.ParseDict({"existingQueues": ["theirs"]}, config.properties)
    analyzer.Configure(proto.ConfigureAnalyzerRequest(policyConfig={LEAF: config}), None)
    assert LEAF not in [
        diagnostic.policyName for diagnostic in analyzer.AnalyzeStack(sent, None).diagnostics
    ]


@pytest.mark.parametrize("version", ["v3", "v4"])
def test_namespace_reserved_refuses_kai_by_a_chart_of_pulumis_and_no_other_chart(version, texts):
    def created(kind: str, name: str, namespace: str) -> Any:
        template = {"spec": {"containers": [{"name": "main"}]}}
        props = {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}
        one = resource(f"kubernetes:{kind}", name, props, "ml")
        of = f"kubernetes:helm.sh/{version}:Chart$kubernetes:{kind}"
        return replace(one, urn=f"urn:pulumi:dev::shop::{of}::kai:{namespace}/{name}")

    messages = []
    for kind in ("apps/v1:Deployment", "core/v1:Service"):
        ((policy, level, _, message),) = reported(Analyzer(), created(kind, "kai", "kai-scheduler"))
        assert (policy, level) == ("namespace-reserved", proto.MANDATORY)
        messages.append(message)
        assert reported(Analyzer(), created(kind, "plugin", "kube-system")) == []
    texts(*messages)


def test_namespace_reserved_a_name_makes_nothing_an_object_of_a_chart():
    spec = {"template": {"spec": {"containers": [{"name": "main"}]}}}
    props = {"metadata": {"name": "a", "namespace": "kube-system"}, "spec": spec}
    spoof = resource("kubernetes:apps/v1:Deployment", "a-helm.sh/v3:Chart$b", props, "ml")
    assert [policy for policy, *_ in reported(Analyzer(), spoof)] == ["namespace-reserved"]


def test_gpu_sharing_mode_warns_at_the_level_of_the_finding():
    values = {"global": {"gpuSharingMode": "NvFractions"}}
    kai = {"chart": "kai-scheduler", "version": "v0.18.0", "namespace": "kai-scheduler"}
    release = resource("kubernetes:helm.sh/v3:Release", "kai", kai | {"values": values}, "ml")
    levels = {policy: level for policy, level, _, _ in reported(Analyzer(), release)}
    assert levels["gpu-sharing-mode"] == proto.ADVISORY


@pytest.mark.parametrize("name", ["kai-fleet:index:KaiScheduler$x", "x::kai-fleet:index:A$b::c"])
def test_kai_version_known_a_name_is_not_taken_for_a_component_of_ours(name):
    """Of those the gate in front of the program judges the values and the version."""
    values = {"global": {"resourceReservation": {"namespace": "kube-system"}}}
    release = {"chart": "kai-scheduler", "version": "v99.0.0", "values": values}
    release["namespace"] = "kai-scheduler"
    of_another = resource("kubernetes:helm.sh/v3:Release", "kai", release)
    feigned = resource("kubernetes:helm.sh/v3:Release", name, release)
    assert rules(Analyzer(), feigned) == rules(Analyzer(), of_another)
    assert "kai-version-known" in rules(Analyzer(), feigned)
