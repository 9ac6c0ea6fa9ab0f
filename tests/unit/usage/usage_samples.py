"""Objects of a cluster with KAI, as its API server lists them."""

from typing import Any

GROUP_A, GROUP_B = "aaaa-1", "bbbb-2"


def node(
    name: str, gpus: int = 8, memory: str | None = "81920", ready: bool = True, **labels: str
) -> dict[str, Any]:
    known = {"nvidia.com/gpu.memory": memory} if memory else {}
    return {
        "metadata": {"name": name, "labels": {**known, **labels}},
        "status": {
            "allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def queue(name: str, parent: str | None = None, **resources: Any) -> dict[str, Any]:
    """A resource is its quota, or (quota, limit)."""
    pairs = {
        key: item if isinstance(item, tuple) else (item, -1) for key, item in resources.items()
    }
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    shares = {
        key: {"quota": pairs[key][0], "limit": pairs[key][1], "overQuotaWeight": 1}
        if key in pairs
        else free
        for key in ("cpu", "memory", "gpu")
    }
    spec = {"resources": shares, **({"parentQueue": parent} if parent else {})}
    return {"metadata": {"name": name}, "spec": spec}


def pod(
    name: str,
    queue: str | None = "train",
    node: str | None = None,
    groups: tuple[str, ...] = (),
    asks: dict[str, str] | None = None,
    phase: str | None = None,
    namespace: str = "default",
    scheduler: str = "kai-scheduler",
    **annotations: str,
) -> dict[str, Any]:
    labels = {"kai.scheduler/queue": queue} if queue else {}
    if len(groups) == 1:
        labels["runai-gpu-group"] = groups[0]
    else:
        labels |= {f"runai-gpu-group/{group}": group for group in groups}
    resources = {"requests": asks or {}, "limits": asks or {}}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": "2026-11-01T11:00:00Z",
            "labels": labels,
            "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "ubuntu", "resources": resources}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }


def reservation(group: str, node: str, device: str = "GPU-0") -> dict[str, Any]:
    found = pod(
        f"gpu-reservation-{node}-{group[:5]}",
        None,
        node,
        (group,),
        {"nvidia.com/gpu": "1"},
        namespace="kai-resource-reservation",
    )
    found["metadata"]["annotations"] = {"run.ai/reserve_for_gpu_index": device}
    return found


def kai(version: str = "v0.16.8", name: str = "kai-operator") -> dict[str, Any]:
    image = f"ghcr.io/kai/{name}:{version}"
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def served(deployment: dict[str, Any]) -> dict[str, Any]:
    """A deployment of KAI's that is rolled out."""
    place = {"namespace": "kai-scheduler", "generation": 1}
    deployment["metadata"] |= place
    deployment["status"] = {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1}
    return deployment


def answers(**kinds: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {"deployments": [kai()], "nodes": [node("ml-0")], **kinds}
