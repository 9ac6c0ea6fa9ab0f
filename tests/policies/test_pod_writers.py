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


HALVES = {**pod(CPU), **HALF}
NAMED = {"nvidia.com/kai-scheduler-queue": "team-a"}
HEAD = {"headGroupSpec": {"template": pod()}}
JOB = {"runtimeRef": {"name": "torch"}}
OF_KAI = pod(schedulerName="kai-scheduler")
RUNTIME = {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": OF_KAI}}}]}}}
NEWER_DYNAMO = {"components": [{"name": "Decode", "podTemplate": pod()}]}
PASSES = {
    "KubeRay: the label on the cluster": ray(pod(), labels=IN_TEAM_A),
    "KubeRay's own sample of half a GPU": ray(HALVES, labels=IN_TEAM_A),
    "a RayJob": written("RayJob", {"rayClusterSpec": HEAD}, labels=IN_TEAM_A),
    "a RayService": written("RayService", {"rayClusterConfig": HEAD}, labels=IN_TEAM_A),
    "Dynamo: its annotation": dynamo(annotations=NAMED),
    "a newer Dynamo": written("DynamoGraphDeployment", NEWER_DYNAMO, annotations=NAMED),
    "Grove: the set's label": grove({}, labels=IN_TEAM_A),
    "Grove: the set's annotation": grove({}, annotations=IN_TEAM_A),
    "Grove: one clique for all": grove({"labels": IN_TEAM_A}, {}),
    "a runtime has the scheduler": written("TrainingRuntime", RUNTIME),
    "and the TrainJob the queue": written("TrainJob", JOB, labels=IN_TEAM_A),
    "or its spec": written("TrainJob", {**JOB, "labels": IN_TEAM_A}),
}
REFUSED = {
    "KubeRay": (ray(pod()), "write the label kai.scheduler/queue: team-a on the RayCluster"),
    "a RayJob": (written("RayJob", {"rayClusterSpec": HEAD}), "KubeRay with --batch-scheduler=kai"),
    "a parent": (ray(pod(), labels={"kai.scheduler/queue": "dept"}), "which has children"),
    "Dynamo": (
        dynamo(),
        "which would look for one called dynamo; write the annotation"
        " nvidia.com/kai-scheduler-queue: team-a on the DynamoGraphDeployment",
    ),
    "the label, which Dynamo ignores": (dynamo(labels=IN_TEAM_A), "for one called dynamo"),
    "an absent queue": (
        dynamo(annotations={"nvidia.com/kai-scheduler-queue": "nowhere"}),
        "write team-a in the annotation nvidia.com/kai-scheduler-queue of the Dynamo",
    ),
    "Grove": (grove({}), "on the PodCliqueSet"),
    "a slip": (grove({"labels": {"kai.scheduler/queue": "taem-a"}}), "write team-a"),
    "a TrainJob": (written("TrainJob", JOB, labels={"kai.scheduler/queue": "dept"}), "children"),
}


@pytest.mark.parametrize("case", PASSES)
def test_a_queue_where_the_operator_finds_it_passes(case):
    assert refusals(PASSES[case]) == []


@pytest.mark.parametrize("case", REFUSED)
def test_no_queue_there_or_a_wrong_one_is_refused_with_the_place_to_write_it(case):
    document, message = REFUSED[case]
    found = refusals(document)
    assert {problem.check for problem in found} == {LEAF}
    assert all(message in problem.message for problem in found)


def test_without_queues_and_shares_they_are_nothing_to_kai():
    assert said(ray(pod()), queues=False) == said(dynamo(), queues=False) == []
    assert refused_by(said(ray(HALVES), queues=False)) == {LEAF}
    assert refusals(queue("dynamo", "dept"), dynamo()) == []


def test_under_a_guard_kuberay_names_the_queue_on_each_pod_where_it_writes_the_scheduler():
    assert refused_by(said(ray(pod(), labels=IN_TEAM_A), guarded=True)) == set()
    found = said(ray(OF_KAI, labels=IN_TEAM_A), guarded=True)
    (problem,) = [it for it in found if it.level is Level.MANDATORY]
    assert "write kai.scheduler/queue: team-a in the labels of the pod template" in problem.message


def test_a_service_of_dynamo_that_another_scheduler_places_has_no_queue():
    for notes in ({}, NAMED):
        other = dynamo(annotations=notes)
        service = other["spec"]["services"]["Decode"]
        service["extraPodSpec"]["schedulerName"] = "default-scheduler"
        assert refusals(other) == []
