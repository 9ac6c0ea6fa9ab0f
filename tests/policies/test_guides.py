"""The manifests that KAI's and vCluster's guides show, with the verdict that each deserves."""

import pytest
import yaml

from kai_fleet.finding import Level
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.rules import check
from tests.policies.samples import manifest, refused_by, resource

FREE = "{cpu: &free {quota: -1, limit: -1, overQuotaWeight: 1}, gpu: *free, memory: *free}"
DEFAULT_AND_TEST = f"""
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: default}}
spec: {{resources: {FREE}}}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: test}}
spec: {{parentQueue: default, resources: {FREE}}}
"""
KAI = resource(
    "kubernetes:helm.sh/v3:Release",
    "kai-scheduler",
    {
        "chart": "oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler",
        "version": "v0.7.11",
        "namespace": "kai-scheduler",
        "values": {"global": {"gpuSharing": True}},
    },
)


def pod(name="p", labels=None, annotations=None, scheduler="kai-scheduler", resources=None, **meta):
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}, **meta}
    spec = {"containers": [{"name": "main", "image": "ubuntu", "resources": resources or {}}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def verdict(*documents, kai=KAI):
    queues = yaml.safe_load_all(DEFAULT_AND_TEST)
    resources = [kai, *(manifest(document) for document in (*queues, *documents))]
    return check(clusters(resources))


IN_TEST = {"kai.scheduler/queue": "test"}
ONE_GPU = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
UTILIZATION = " --gpu-memory-utilization=0.7"
VLLM = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "vllm-test-07", "namespace": "ai-workloads"},
    "spec": {
        "template": {
            "metadata": {"labels": IN_TEST, "annotations": {"gpu-fraction": "0.7"}},
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": [
                    {
                        "name": "vllm",
                        "image": "vllm/vllm-openai:latest",
                        "command": ["/bin/sh", "-c"],
                        "args": ["vllm serve Qwen/Qwen2.5-1.5B-Instruct" + UTILIZATION],
                        "resources": {"limits": {"cpu": "8"}},
                    }
                ],
            },
        }
    },
}


@pytest.mark.parametrize(
    "document",
    [
        pod("cpu-pod", IN_TEST, resources={"requests": {"cpu": "100m", "memory": "250M"}}),
        pod("gpu-pod", IN_TEST, resources=ONE_GPU),
        pod("gpu-sharing", IN_TEST, {"gpu-fraction": "0.5"}),
        pod("inference-api", IN_TEST, {"gpu-fraction": "0.25"}),
        pod("gpu-memory", IN_TEST, {"gpu-memory": "2000"}),
        pod("research-pod", scheduler=None, resources={"requests": {"nvidia.com/gpu": "1"}}),
        VLLM,
    ],
    ids=lambda document: document["metadata"]["name"],
)
def test_their_working_examples_pass(document):
    assert refused_by(verdict(document)) == set()


def test_examples_for_vcluster_that_name_no_queue_are_refused():
    for document in (pod("cpu-only-pod"), pod("gpu-pod", resources=ONE_GPU)):
        assert refused_by(verdict(document)) == {"workload-leaf-queue", "workload-scheduler"}


def test_the_demos_fraction_key_is_refused_with_the_right_one():
    problems = verdict(pod("demo", IN_TEST, {"kai.scheduler/gpu-fraction": "0.5"}))
    (problem,) = [p for p in problems if p.level is Level.MANDATORY]
    assert problem.check == "workload-known-keys"
    assert "write the annotation gpu-fraction" in problem.message


def test_a_pod_for_a_queue_that_nobody_made_is_refused():
    problems = verdict(pod("gpu-pod", {"kai.scheduler/queue": "default-queue"}))
    assert refused_by(problems) == {"workload-leaf-queue"}


def test_a_parent_that_a_guide_lets_take_pods_is_refused():
    assert refused_by(verdict(pod("p", {"kai.scheduler/queue": "default"}))) == {
        "workload-leaf-queue"
    }


def test_queues_that_a_guide_puts_in_kais_namespace_are_refused():
    queue = next(yaml.safe_load_all(DEFAULT_AND_TEST))
    queue["metadata"] = {"name": "q", "namespace": "kai-scheduler"}
    queue["spec"]["parentQueue"] = "default"
    assert refused_by(verdict(queue)) == {"queue-cluster-scoped"}


def test_queues_of_a_guide_that_leave_limits_out_are_refused():
    research = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "research-team"},
        "spec": {
            "resources": {"cpu": {"quota": 1000, "limit": 2000}, "gpu": {"quota": 1, "limit": 2}}
        },
    }
    team = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "ml-team"},
        "spec": {
            "parentQueue": "research-team",
            "priority": 200,
            "resources": {
                "cpu": {"quota": 500, "overQuotaWeight": 2},
                "gpu": {"quota": 1, "overQuotaWeight": 1},
            },
        },
    }
    problems = verdict(research, team)
    assert refused_by(problems) == {"queue-quota"}
    text = "\n".join(str(p) for p in problems)
    assert "queue ml-team in default: leaves its cpu limit out" in text
    assert "queue ml-team in default: leaves its gpu limit out" in text
    assert "queue research-team in default: has no share of memory" in text


def test_workloads_in_the_schedulers_namespace_are_refused():
    document = pod("p", IN_TEST, namespace="kai-scheduler")
    assert refused_by(verdict(document)) == {"namespace-reserved"}
