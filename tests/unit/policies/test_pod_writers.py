"""Programs of others: kinds whose operator writes the scheduler or the queue on their pods."""

from collections.abc import Mapping
from typing import Any

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.model.pods import workloads
from kai_fleet_policies.rules import check
from tests.stack_files import queue_object
from tests.unit.policies.samples import manifest, refused_by

pytestmark = pytest.mark.texts("rules")

FREE = {r: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for r in ("cpu", "gpu", "memory")}
IN_TEAM_A = {"kai.scheduler/queue": "team-a"}


def pod(**spec: Any) -> dict[str, Any]:
    whole = {"limits": {"nvidia.com/gpu": "1"}}
    return {"spec": {"containers": [{"name": "c", "resources": whole}], **spec}}


def written(kind: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    created = {"name": "x", "namespace": "ml", **metadata}
    return {"apiVersion": "example.org/v1", "kind": kind, "metadata": created, "spec": spec}


def queue(name: str, parent: str | None = None) -> dict[str, Any]:
    return queue_object(name, FREE, parent)


def refusals(*documents: Mapping[str, Any]) -> list[Finding]:
    tree = (queue("dept"), queue("team-a", "dept"))
    found = clusters([manifest(document) for document in (*tree, *documents)])
    return [problem for problem in check(found) if problem.level is Level.MANDATORY]


def ray(worker: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    groups = [{"groupName": "w", "replicas": 2, "template": worker}]
    return written("RayCluster", {**HEAD, "workerGroupSpecs": groups}, **metadata)


def dynamo(**annotations: Any) -> dict[str, Any]:
    spec = {"components": [{"name": "Decode", "podTemplate": pod()}]}
    return written("DynamoGraphDeployment", spec, annotations=annotations)


def grove(*labels: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """A set with a clique for each of these labels, or with one clique without any."""
    clique = {"name": "c", "spec": {"podSpec": pod()["spec"]}}
    cliques = [{**clique, "labels": own} for own in labels] or [clique]
    return written("PodCliqueSet", {"template": {"cliques": cliques}}, **metadata)


DYNAMOS = "nvidia.com/kai-scheduler-queue"
HEAD = {"headGroupSpec": {"template": pod()}}
JOB = {"runtimeRef": {"name": "torch"}}
OF_KAI = pod(schedulerName="kai-scheduler")
RUNTIME = {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": OF_KAI}}}]}}}
OLDER_DYNAMO = {"services": {"Decode": {"extraPodSpec": {"mainContainer": {"image": "i"}}}}}
PASSES = {
    "KubeRay: the label on the cluster": ray(pod(), labels=IN_TEAM_A),
    "a RayJob": written("RayJob", {"rayClusterSpec": HEAD}, labels=IN_TEAM_A),
    "a RayService": written("RayService", {"rayClusterConfig": HEAD}, labels=IN_TEAM_A),
    "without a queue it may be nothing to KAI": ray(pod()),
    "pods of another scheduler": ray(pod(schedulerName="default-scheduler"), labels=IN_TEAM_A),
    "Dynamo: its annotation": dynamo(**{DYNAMOS: "team-a"}),
    "Grove: the set's label": grove(labels=IN_TEAM_A),
    "Grove: one clique": grove(IN_TEAM_A, {}),
    "a runtime has the scheduler": written("TrainingRuntime", RUNTIME),
    "and the TrainJob the queue": written("TrainJob", JOB, labels=IN_TEAM_A),
    "or its spec": written("TrainJob", {**JOB, "labels": IN_TEAM_A}),
}
REFUSED = {
    "KubeRay": ray(pod(), labels={"kai.scheduler/queue": "dept"}),
    "Dynamo": dynamo(**{DYNAMOS: "nowhere"}),
    "an older Dynamo": written(
        "DynamoGraphDeployment", OLDER_DYNAMO, annotations={DYNAMOS: "nowhere"}
    ),
    "a clique": grove({"kai.scheduler/queue": "taem-a"}),
    "a TrainJob": written("TrainJob", JOB, labels={"kai.scheduler/queue": "dept"}),
}


@pytest.mark.parametrize("case", PASSES)
def test_workload_leaf_queue_where_the_operator_finds_it_passes(case):
    assert refusals(PASSES[case]) == []


@pytest.mark.parametrize("case", REFUSED)
def test_workload_leaf_queue_wrong_where_the_operator_finds_it_is_refused(case, texts):
    found = refusals(REFUSED[case])
    assert refused_by(found) == {"workload-leaf-queue"}
    texts(*found)


def test_gpus_of_a_pod_are_read_from_requests_and_limits_alike():
    both = {"requests": {"amd.com/gpu": 1}, "limits": {"nvidia.com/mig-1g.10gb": "1", "cpu": 1}}
    resources = (both, {"requests": {"cpu": 1}, "limits": UNKNOWN}, {})
    spec = {"containers": [{"name": "c", "resources": each} for each in resources]}
    (read,) = workloads("Pod", {"spec": spec}, "x", "")
    gpus = [container.gpus for container in read.containers]
    assert gpus == [["amd.com/gpu", "nvidia.com/mig-1g.10gb"], UNKNOWN, []]
