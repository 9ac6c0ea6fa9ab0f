"""The manifests that KAI's and vCluster's guides show, with the verdict that each deserves."""

import pytest
import yaml

from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.rules import check
from tests.policies.samples import manifest, refused_by, resource

FREE = "{cpu: &free {quota: -1, limit: -1, overQuotaWeight: 1}, gpu: *free, memory: *free}"
QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: %s}
spec: {%s resources: %s}
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
IN_TEST = {"kai.scheduler/queue": "test"}
ONE_GPU = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}


def queue(name, parent="", resources=FREE):
    return yaml.safe_load(QUEUE % (name, parent and f"parentQueue: {parent},", resources))


def pod(labels=None, annotations=None, scheduler="kai-scheduler", resources=None, **meta):
    metadata = {"name": "p", "labels": labels or {}, "annotations": annotations or {}, **meta}
    spec = {"containers": [{"name": "main", "image": "ubuntu", "resources": resources or {}}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(*labels_and_annotations):
    template = pod(*labels_and_annotations)
    metadata = {"name": "vllm", "namespace": "ai-workloads"}
    spec = {"template": {key: template[key] for key in ("metadata", "spec")}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def verdict(*documents):
    tree = (queue("default"), queue("test", "default"))
    return check(clusters([KAI, *(manifest(document) for document in (*tree, *documents))]))


IN_KAIS_NAMESPACE = queue("q", "default")
IN_KAIS_NAMESPACE["metadata"]["namespace"] = "kai-scheduler"


@pytest.mark.parametrize(
    ("document", "refused"),
    [
        (pod(IN_TEST, resources={"requests": {"cpu": "100m", "memory": "250M"}}), set()),
        (pod(IN_TEST, resources=ONE_GPU), set()),
        (pod(IN_TEST, {"gpu-fraction": "0.25"}), set()),
        (pod(IN_TEST, {"gpu-memory": "2000"}), set()),
        (pod(scheduler=None, resources={"requests": {"nvidia.com/gpu": "1"}}), set()),
        (deployment(IN_TEST, {"gpu-fraction": "0.7"}), set()),
        (pod(), {"workload-leaf-queue", "workload-scheduler"}),
        (pod(resources=ONE_GPU), {"workload-leaf-queue", "workload-scheduler"}),
        (pod(IN_TEST, {"kai.scheduler/gpu-fraction": "0.5"}), {"workload-known-keys"}),
        (pod({"kai.scheduler/queue": "default-queue"}), {"workload-leaf-queue"}),
        (pod({"kai.scheduler/queue": "default"}), {"workload-leaf-queue"}),
        (IN_KAIS_NAMESPACE, {"queue-cluster-scoped"}),
        (pod(IN_TEST, namespace="kai-scheduler"), {"namespace-reserved"}),
    ],
)
def test_a_manifest_of_a_guide_is_judged_as_it_runs(document, refused):
    assert refused_by(verdict(document)) == refused


def test_queues_of_a_guide_that_leave_limits_out_are_refused():
    limited = "{cpu: {quota: 1000, limit: 2000}, gpu: {quota: 1, limit: 2}}"
    free = "{cpu: {quota: 500, overQuotaWeight: 2}, gpu: {quota: 1, overQuotaWeight: 1}}"
    above = queue("research-team", resources=limited)
    problems = verdict(above, queue("ml-team", "research-team", free))
    assert refused_by(problems) == {"queue-quota"}
    text = "\n".join(str(p) for p in problems)
    assert "queue ml-team in default: leaves its cpu limit out" in text
    assert "queue ml-team in default: leaves its gpu limit out" in text
    assert "queue research-team in default: has no share of memory" in text
