import pytest

from kai_fleet.fleet.cluster import Kai, ManagedObject
from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, refusal, workload

RULE = "namespace-reserved"
RESERVED = [
    *("kai-scheduler", "kai-resource-reservation", "kai-scale-adjust"),
    *("gpu-operator", "kube-system"),
]


def test_workloads_in_namespaces_of_teams_pass():
    assert found(RULE, cluster(workload(), workload(namespace=None))) == []


@pytest.mark.parametrize("namespace", RESERVED)
def test_workloads_in_reserved_namespaces_are_refused(namespace):
    problem = refusal(RULE, cluster(workload(namespace=namespace)))
    assert f"runs in {namespace}, which is reserved for the platform" in problem.message
    assert "write a namespace of the team's own" in problem.message


def test_kais_scaling_pods_are_kais_own_in_their_namespace_alone():
    labels = {"app": "scaling-pod", "shared-gpu-pod-name": "half"}
    scaling = workload(namespace="kai-scale-adjust", labels=labels, scheduler=None)
    assert found(RULE, cluster(scaling)) == []
    refusal(RULE, cluster(workload(namespace="kube-system", labels=labels)))


def test_kais_namespace_is_for_kai_alone():
    pull_secret = ManagedObject("Secret", "pull", "kai-scheduler")
    elsewhere = ManagedObject("Release", "plugin", "kube-system", "nvidia-device-plugin")
    assert found(RULE, cluster(objects=(pull_secret, elsewhere))) == []
    other = ManagedObject("Release", "grafana", "kai-scheduler", "grafana", path="urn:x")
    problem = refusal(RULE, cluster(objects=(other,)))
    assert (problem.subject, problem.path) == ("Release grafana in host", "urn:x")
    assert "removing KAI deletes every Deployment; write another namespace" in problem.message


def test_kai_itself_goes_nowhere_else():
    problem = refusal(RULE, cluster(kai=(Kai("v0.9.3", namespace="gpu", path="kai-fleet:kai"),)))
    assert problem.path == "kai-fleet:kai.namespace"
    assert problem.message.endswith("write namespace: kai-scheduler")


def test_unknown_namespaces_are_told():
    assert "namespace" in open_question(RULE, cluster(workload(namespace=UNKNOWN))).message
    assert (
        "namespace" in open_question(RULE, cluster(kai=(Kai("v0.9.3", namespace=UNKNOWN),))).message
    )
    release = ManagedObject("Release", "x", UNKNOWN)
    assert "namespace" in open_question(RULE, cluster(objects=(release,))).message
