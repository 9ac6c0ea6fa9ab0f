"""Labels, annotations and names that KAI reads or uses, and what people write instead of them."""

import re
from difflib import get_close_matches
from typing import Final

SCHEDULER: Final = "kai-scheduler"
QUEUE_LABEL: Final = "kai.scheduler/queue"
KAI_NAMESPACE: Final = "kai-scheduler"
DEFAULT_SHARD: Final = "default"
METRICS_PORT: Final = 8080  # of scheduler and queue controller, in every version
NODE_POOL: Final = "kai.scheduler/node-pool"  # a label of nodes, queues and pods: their shard
# Of pods by which an autoscaler sees a pod with a share of a GPU that waits.
SCALING_NAMESPACE: Final = "kai-scale-adjust"
# The label of a pod that shares a GPU, and of its reservation; the namespace of these.
GPU_GROUP: Final = "runai-gpu-group"
RESERVATIONS: Final = "kai-resource-reservation"
# Namespaces of KAI, the GPU operator and Kubernetes.
RESERVED: Final = frozenset(
    {KAI_NAMESPACE, RESERVATIONS, SCALING_NAMESPACE, "gpu-operator", "kube-system"}
)
# What runtimes without GPUs are called in their own installation guides.
NO_GPU_CLASSES: Final = (
    *("runc", "crun", "youki", "gvisor", "runsc"),
    *("kata", "kata-clh", "kata-fc", "kata-qemu"),
)
POD_GROUP: Final = "pod-group-name"  # an annotation; the PodGroup of that name has the queue
GPU_PRODUCT: Final = "nvidia.com/gpu.product"  # a label of nodes: the model of their GPUs
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
CONTAINER: Final = "gpu-fraction-container-name"
MPS: Final = "mps"

_ANNOTATIONS: Final = frozenset({FRACTION, MEMORY, DEVICES, CONTAINER})
# What any release from v0.7 to v0.18 reads under its own prefix, as label or annotation.
_KAI_KEYS: Final = frozenset(
    f"kai.scheduler/{name}"
    for name in (
        *("accounting", "background", "batch-min-member"),
        *("last-eviction-timestamp", "last-start-timestamp"),
        *("min-member", "node-pool", "nodepool", "numa-placement-observed"),
        *("numa-placement-predicted", "preemptibility", "preemption-delay", "queue"),
        *("segment-size", "segment-topology-preferred-placement"),
        *("segment-topology-required-placement", "skip-podgrouper", "stale-podgroup-timestamp"),
        *("staleness-grace-period", "subgroup-name", "task-priority", "top-owner-metadata"),
        *("topology", "topology-preferred-placement", "topology-required-placement", "type"),
    )
)
# Of one container, in mode NvFractions: `kai.scheduler/container.main.gpu-memory.portion.limit`.
_OF_CONTAINER: Final = "kai.scheduler/container."
_PREFIXES: Final = frozenset(
    {"kai.scheduler", "kai-scheduler", "runai", "run.ai", "scheduling.run.ai"}
)
# A domain that KAI never had, from generated manifests and blogs: every key of it is wrong.
_NO_DOMAIN: Final = "kai.scheduler.nvidia.com"
# Behind the device plugin's own domain only names that mean a share of a GPU are KAI's.
_PLUGIN_DOMAIN: Final = "nvidia.com"
# What people write, behind a known prefix or with dashes for `_`, for a key of another name.
MEANT: Final = {name: name for name in _ANNOTATIONS} | {
    "fraction": "gpu-fraction",
    "gpu": "gpu-fraction",
    "memory": "gpu-memory",
    "num-devices": "gpu-fraction-num-devices",
    "container-name": "gpu-fraction-container-name",
    "mps": "mps",
    "queue": QUEUE_LABEL,
    "queue-name": QUEUE_LABEL,
}


def right_key(key: str) -> str | None:
    """The key that was meant: the same if right, "" for none, None if KAI has no part in it."""
    prefix, slash, name = key.rpartition("/")
    if key in _ANNOTATIONS or key == QUEUE_LABEL:
        return key
    if key in _KAI_KEYS or key.startswith(_OF_CONTAINER):
        return None
    if prefix == _PLUGIN_DOMAIN:
        return name if name in _ANNOTATIONS else None
    if slash and prefix.lower() in (*_PREFIXES, _NO_DOMAIN):
        meant = MEANT.get(_dashed(name))
        if meant is not None:
            return meant
        if prefix.lower() not in ("kai.scheduler", _NO_DOMAIN):
            return None
        known = [*(k.rpartition("/")[2] for k in _KAI_KEYS), *_ANNOTATIONS]
        close = get_close_matches(name, known, n=1, cutoff=0.75)
        if not close:
            return ""
        return close[0] if close[0] in _ANNOTATIONS else f"kai.scheduler/{close[0]}"
    if not slash and _dashed(key) in _ANNOTATIONS:
        return _dashed(key)
    return None


def _dashed(name: str) -> str:
    return re.sub(r"[_.\s-]+", "-", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name)).lower()
