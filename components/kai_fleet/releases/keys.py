"""Labels, annotations and names that KAI reads or uses, and what people write instead of them."""

from collections.abc import Mapping
from typing import Final

from kai_fleet.releases import table

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
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
CONTAINER: Final = "gpu-fraction-container-name"
MPS: Final = "mps"

_ANNOTATIONS: Final = frozenset({FRACTION, MEMORY, DEVICES, CONTAINER})
_TABLE: Final = table("keys")
MEANT: Final[Mapping[str, str]] = _TABLE["meant"]
_READ: Final = frozenset(f"kai.scheduler/{name}" for name in _TABLE["read"])
# Of one container, in mode NvFractions: `kai.scheduler/container.main.gpu-memory.portion.limit`.
_OF_CONTAINER: Final = "kai.scheduler/container."
# Behind the device plugin's own domain only names that mean a share of a GPU are KAI's.
_PLUGIN_DOMAIN: Final = "nvidia.com"


def right_key(key: str) -> str | None:
    """The key that was meant: the same if right, "" for none, None if KAI has no part in it."""
    prefix, slash, name = key.rpartition("/")
    if key in _ANNOTATIONS or key == QUEUE_LABEL:
        return key
    if key in _READ or key.startswith(_OF_CONTAINER):
        return None
    if prefix == _PLUGIN_DOMAIN:
        return name if name in _ANNOTATIONS else None
    prefix, dashed = prefix.lower(), name.replace("_", "-").lower()
    if not slash:
        return dashed if dashed in _ANNOTATIONS else None
    if prefix in _TABLE["prefixes"] and dashed in MEANT:
        return MEANT[dashed]
    own = f"kai.scheduler/{name}"
    return (own if own in _READ else "") if prefix in _TABLE["domains"] else None
