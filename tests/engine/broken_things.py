"""Objects that tests put into a cluster to break something there, and take away again."""

import contextlib
from collections.abc import Iterator
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

QUEUES = ("scheduling.run.ai", "v2", "queues")
SHARDS = ("kai.scheduler", "v1", "schedulingshards")
CONFIGS = ("kai.scheduler", "v1", "configs")


def kai_pod(name: str, queue: str | None, **more: Any) -> dict[str, Any]:
    """A pod of KAI that its pod-grouper is done with; nobody groups pods in the sandbox."""
    labels = {**({"kai.scheduler/queue": queue} if queue else {}), **more.get("labels", {})}
    notes = {"kai.scheduler/skip-podgrouper": "true", **more.get("annotations", {})}
    limits = {"nvidia.com/gpu": more["gpus"]} if "gpus" in more else {}
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    if more.get("scheduler", True):
        spec |= {"schedulerName": "kai-scheduler"}
    # One without a node is to stay so, whoever binds pods here.
    spec |= {"nodeName": more["node"]} if "node" in more else {"nodeSelector": {"no": "node"}}
    metadata = {"name": name, "labels": labels, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def pods(api: client.ApiClient, *bodies: dict[str, Any], namespace: str = "default") -> Iterator:
    """Pods that are there for a while; yields how to write their status."""
    core = client.CoreV1Api(api)
    try:
        for body in bodies:
            core.create_namespaced_pod(namespace, body)
        yield lambda name, status: core.patch_namespaced_pod_status(
            name, namespace, {"status": status}
        )
    finally:
        for body in bodies:
            with contextlib.suppress(ApiException):
                core.delete_namespaced_pod(
                    body["metadata"]["name"], namespace, grace_period_seconds=0
                )


@contextlib.contextmanager
def changed(
    api: client.ApiClient, kind: tuple[str, str, str], name: str, spec: Any, back: Any
) -> Iterator:
    """An object with another spec for a while."""
    objects = client.CustomObjectsApi(api)
    objects.patch_cluster_custom_object(*kind, name, {"spec": spec})
    try:
        yield
    finally:
        objects.patch_cluster_custom_object(*kind, name, {"spec": back})


@contextlib.contextmanager
def without_queue(api: client.ApiClient, name: str) -> Iterator:
    """A queue that is gone for a while."""
    objects = client.CustomObjectsApi(api)
    body = objects.get_cluster_custom_object(*QUEUES, name)
    objects.delete_cluster_custom_object(*QUEUES, name)
    body["metadata"] = {"name": name, "labels": body["metadata"].get("labels") or {}}
    body.pop("status", None)
    try:
        yield
    finally:
        objects.create_cluster_custom_object(*QUEUES, body)


def queue(name: str, parent: str | None = None) -> dict[str, Any]:
    share = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parentQueue": parent} if parent else {}),
            "resources": {"cpu": share, "memory": share, "gpu": share},
        },
    }


def dead_webhook(name: str) -> dict[str, Any]:
    """A webhook of KAI whose service is gone; its selector keeps it from every object."""
    hook = {
        "name": "admission.kai-scheduler.svc",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"service": {"name": "gone", "namespace": "kai-scheduler"}},
        "objectSelector": {"matchLabels": {"nobody": "has-this"}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


def deployment(name: str) -> dict[str, Any]:
    """A deployment of KAI's namespace that somebody left there."""
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": f"x/{name}:v0.9.3"}]}
    return {
        "metadata": {"name": name, "namespace": "kai-scheduler"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
