"""Programs of others: kinds whose operator writes the scheduler or the queue on their pods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kai_fleet.finding import Finding, Level
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.rules import check
from tests.policies.samples import manifest, refused_by

FREE = {r: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for r in ("cpu", "gpu", "memory")}
IN_TEAM_A = {"kai.scheduler/queue": "team-a"}
WHOLE = {"limits": {"nvidia.com/gpu": "1"}}
HALF = {"metadata": {"annotations": {"gpu-fraction": "0.5"}}}
CPU = {"limits": {"cpu": "1"}}
LEAF, SCHEDULER = "workload-leaf-queue", "workload-scheduler"


def pod(resources: Any = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": resources or WHOLE}], **spec}}


def written(kind: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    made = {"name": "x", "namespace": "ml", **metadata}
    return {"apiVersion": "example.org/v1", "kind": kind, "metadata": made, "spec": spec}


def queue(name: str, parent: str | None = None) -> dict[str, Any]:
    spec = {"resources": FREE} | ({"parentQueue": parent} if parent else {})
    made = {"name": name}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": made, "spec": spec}


def said(
    *documents: Mapping[str, Any], queues: bool = True, guarded: bool = False
) -> list[Finding]:
    tree = [queue("dept"), queue("team-a", "dept")] if queues else []
    found = clusters([manifest(it) for it in (*tree, *documents)])
    return check([replace(cluster, guarded=guarded) for cluster in found])


def refusals(*documents: Mapping[str, Any], queues: bool = True) -> list[Finding]:
    return [p for p in said(*documents, queues=queues) if p.level is Level.MANDATORY]


def ray(worker: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    groups = [{"groupName": "w", "replicas": 2, "template": worker}]
    return written(
        "RayCluster",
        {"headGroupSpec": {"template": pod(CPU)}, "workerGroupSpecs": groups},
        **metadata,
    )


def dynamo(**metadata: Any) -> dict[str, Any]:
    service = {
        "componentType": "worker",
        "resources": {"limits": {"gpu": "1"}},
        "extraPodSpec": {"mainContainer": {"image": "i"}},
    }
    return written("DynamoGraphDeployment", {"services": {"Decode": service}}, **metadata)


def grove(*cliques: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    made = [
        {"name": f"c{i}", "spec": {"podSpec": pod()["spec"]}, **it} for i, it in enumerate(cliques)
    ]
    return written("PodCliqueSet", {"template": {"cliques": made}}, **metadata)


@pytest.mark.parametrize(
    "worker", [pod(), {**pod(CPU), **HALF}], ids=["whole GPUs", "half a GPU (KubeRay's sample)"]
)
def test_a_ray_cluster_with_the_label_on_itself_alone_passes(worker):
    assert refusals(ray(worker, labels=IN_TEAM_A)) == []


@pytest.mark.parametrize("worker", [pod(), {**pod(CPU), **HALF}])
def test_a_ray_cluster_without_a_queue_anywhere_is_refused_once_for_each_group(worker):
    found = refusals(ray(worker))
    assert {problem.check for problem in found} == {LEAF}
    assert all("KubeRay with --batch-scheduler=kai-scheduler" in p.message for p in found)
    assert "write the label kai.scheduler/queue: team-a on the RayCluster" in found[0].message


def test_without_queues_and_shares_a_ray_cluster_is_nothing_to_kai():
    assert said(ray(pod()), queues=False) == []
    assert refused_by(said(ray({**pod(CPU), **HALF}), queues=False)) == {LEAF}


def test_under_a_guard_kuberay_names_the_queue_on_each_pod_where_it_writes_the_scheduler():
    assert refused_by(said(ray(pod(), labels=IN_TEAM_A), guarded=True)) == set()
    own = ray(pod(schedulerName="kai-scheduler"), labels=IN_TEAM_A)
    (problem,) = [it for it in said(own, guarded=True) if it.level is Level.MANDATORY]
    assert "write kai.scheduler/queue: team-a in the labels of the pod template" in problem.message


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("RayJob", {"rayClusterSpec": {"headGroupSpec": {"template": pod()}}}),
        ("RayService", {"rayClusterConfig": {"headGroupSpec": {"template": pod()}}}),
        ("RayCronJob", {"jobTemplate": {"rayClusterSpec": {"headGroupSpec": {"template": pod()}}}}),
    ],
)
def test_other_kinds_of_ray_pass_with_the_label_and_not_without(kind, spec):
    assert refusals(written(kind, spec, labels=IN_TEAM_A)) == []
    assert refused_by(said(written(kind, spec))) == {LEAF}


def test_the_annotation_of_a_dynamo_graph_is_its_queue():
    named = {"nvidia.com/kai-scheduler-queue": "team-a"}
    assert refusals(dynamo(annotations=named)) == []
    newer = {"components": [{"name": "Decode", "podTemplate": pod()}]}
    assert refusals(written("DynamoGraphDeployment", newer, annotations=named)) == []


@pytest.mark.parametrize("labels", [{}, IN_TEAM_A], ids=["nothing", "the label, which it ignores"])
def test_a_dynamo_graph_without_it_takes_the_queue_dynamo(labels):
    (problem,) = refusals(dynamo(labels=labels))
    assert "which would look for one called dynamo" in problem.message
    assert (
        "write the annotation nvidia.com/kai-scheduler-queue: team-a on the DynamoGraphDeployment"
    ) in problem.message
    assert refusals(queue("dynamo", "dept"), dynamo()) == []
    assert said(dynamo(), queues=False) == []


def test_a_service_of_dynamo_that_another_scheduler_places_has_no_queue():
    named = {"nvidia.com/kai-scheduler-queue": "team-a"}
    for notes in ({}, named):
        other = dynamo(annotations=notes)
        service = other["spec"]["services"]["Decode"]
        service["extraPodSpec"]["schedulerName"] = "default-scheduler"
        assert refusals(other) == []
    wrong = dynamo(annotations={"nvidia.com/kai-scheduler-queue": "nowhere"})
    (problem,) = refusals(wrong)
    assert problem.message.endswith(
        "write team-a in the annotation nvidia.com/kai-scheduler-queue of the DynamoGraphDeployment"
    )


@pytest.mark.parametrize(
    "made",
    [
        grove({}, labels=IN_TEAM_A),
        grove({}, annotations=IN_TEAM_A),
        grove({"labels": IN_TEAM_A}, {"labels": IN_TEAM_A}),
        grove({"labels": IN_TEAM_A}, {}),
    ],
    ids=["the set's label", "the set's annotation", "every clique", "one clique for all"],
)
def test_a_clique_set_of_grove_passes_where_grove_finds_its_queue(made):
    assert refusals(made) == []


def test_a_clique_set_without_a_queue_or_with_a_wrong_one_is_refused():
    assert refused_by(said(grove({}))) == {LEAF}
    (problem,) = refusals(grove({"labels": {"kai.scheduler/queue": "taem-a"}}))
    assert problem.message.endswith("write team-a")


def test_a_train_job_has_the_queue_and_its_runtime_the_scheduler():
    runtime = {
        "template": {
            "spec": {
                "replicatedJobs": [
                    {"template": {"spec": {"template": pod(schedulerName="kai-scheduler")}}}
                ]
            }
        }
    }
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        assert refusals(written(kind, runtime)) == []
    job = {"runtimeRef": {"name": "torch"}}
    assert refusals(written("TrainJob", job, labels=IN_TEAM_A)) == []
    assert refusals(written("TrainJob", {**job, "labels": IN_TEAM_A})) == []
    wrong = written("TrainJob", job, labels={"kai.scheduler/queue": "dept"})
    assert refused_by(said(wrong)) == {LEAF}
