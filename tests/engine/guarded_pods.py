"""Pods for an API server with a guard: the guides' own, wrong ones, and how they are sent."""

from typing import Any

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

IN_TEST = {"kai.scheduler/queue": "test"}
HALF = {"gpu-fraction": "0.5"}
WHOLE = {"nvidia.com/gpu": "1"}


def pod(
    name: str = "p",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    scheduler: str | None = "kai-scheduler",
    limits: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container = {"name": "main", "image": "ubuntu", "resources": {"limits": limits or {}}}
    spec = {"containers": [container], **spec}
    if scheduler:
        spec["schedulerName"] = scheduler
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


# The pods of guides 001 and 002 that name a queue, and one that is nothing to KAI.
GUIDES = {
    "001 cpu-pod": pod("cpu-pod", IN_TEST),
    "001 gpu-pod": pod("gpu-pod", IN_TEST, limits=WHOLE),
    "001 gpu-sharing": pod("gpu-sharing", IN_TEST, HALF),
    "001 inference-api": pod("inference-api", IN_TEST, {"gpu-fraction": "0.25"}),
    "001 research-pod": pod("research-pod", scheduler=None, limits=WHOLE),
    "002 gpu-sharing-pod": pod("gpu-sharing-pod", IN_TEST, HALF),
    "002 gpu-memory": pod("gpu-memory", IN_TEST, {"gpu-memory": "2000"}),
}
# A pod of KAI's own example of a PodGroup that was made before.
GROUPED = pod(annotations={"pod-group-name": "batch"})
WRONG = {
    "W1 a PodGroup of the host": (GROUPED, "names no queue on the pod itself"),
    "W1 no queue": (pod(), "names no queue on the pod itself; write the label"),
    "W1 absent": (pod(labels={"kai.scheduler/queue": "nowhere"}), "names queue nowhere"),
    "W1 parent": (pod(labels={"kai.scheduler/queue": "default"}), "names queue default"),
    "W10 another team's": (pod(labels={"kai.scheduler/queue": "ml"}), "no leaf queue of team"),
    "W2 fraction": (
        pod(labels=IN_TEST, annotations={"kai.scheduler/gpu-fraction": "0.5"}),
        "write the annotation gpu-fraction",
    ),
    "W2 a share as a resource": (
        pod(labels=IN_TEST, limits={"nvidia.com/gpu-fraction": "1"}),
        "write the annotation gpu-fraction",
    ),
    "W2 queue": (pod(labels={"runai/queue": "test"}), "write the label kai.scheduler/queue"),
    "W3 1.5": (pod(labels=IN_TEST, annotations={"gpu-fraction": "1.5"}), "between 0 and 1"),
    "W3 NaN": (pod(labels=IN_TEST, annotations={"gpu-fraction": "NaN"}), "between 0 and 1"),
    "W3 memory": (pod(labels=IN_TEST, annotations={"gpu-memory": "2Gi"}), "number of MiB"),
    "W3 both": (pod(labels=IN_TEST, annotations={**HALF, "gpu-memory": "2000"}), "has both"),
    "W3 whole": (pod(labels=IN_TEST, annotations=HALF, limits=WHOLE), "for whole GPUs"),
    "W3 slices": (
        pod(labels=IN_TEST, annotations=HALF, limits={"nvidia.com/mig-1g.10gb": "1"}),
        "for whole GPUs or slices",
    ),
    "W3 init": (
        pod(
            labels=IN_TEST,
            annotations=HALF,
            initContainers=[{"name": "i", "image": "a", "resources": {"limits": WHOLE}}],
        ),
        "in container i, for whole GPUs",
    ),
    "W3 devices": (
        pod(labels=IN_TEST, annotations={"gpu-fraction-num-devices": "2"}),
        "gpu-fraction-num-devices alone",
    ),
    "W3 mps": (pod(labels=IN_TEST, annotations={"mps": "true"}), "without a share of a GPU"),
    "W6 label": (pod(labels=IN_TEST, scheduler=None), "write schedulerName: kai-scheduler"),
    "W6 fraction": (pod(annotations=HALF, scheduler=None), "write schedulerName: kai-scheduler"),
}


def sent(core: client.CoreV1Api, namespace: str, body: dict[str, Any], dry: bool = True) -> str:
    """What the API server says against a pod, "" where it takes it."""
    try:
        core.create_namespaced_pod(namespace, body, **({"dry_run": "All"} if dry else {}))
    except ApiException as refused:
        assert refused.status == 403, refused.body
        return str(yaml.safe_load(refused.body)["message"])
    return ""


def relabelled(core: client.CoreV1Api, namespace: str, name: str, **metadata: Any) -> str:
    try:
        core.patch_namespaced_pod(name, namespace, {"metadata": metadata})
    except ApiException as refused:
        return str(yaml.safe_load(refused.body)["message"])
    return ""
