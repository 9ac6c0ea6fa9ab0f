"""Labels, annotations and names that KAI reads, and what people write instead of them."""

from collections.abc import Mapping

from kai_fleet.releases import table
from kai_usage.keys import DEVICES, FRACTION, MEMORY, QUEUE_LABEL

DEFAULT_SHARD = "default"
# The queues that KAI's chart makes by default from v0.10 on, a parent and one below it.
# Uninstalling the chart keeps them.
CHART_PARENT = "default-parent-queue"
CHART_LEAF = "default-queue"
CHART_QUEUES = (CHART_PARENT, CHART_LEAF)
NODE_POOL = "kai.scheduler/node-pool"  # a label of nodes, queues and pods: their shard
# PriorityClasses of KAI's charts.
KAI_PRIORITIES = ("train", "build-preemptible", "build", "inference")
# RuntimeClasses without GPUs, as the installation guides of their runtimes call them.
NO_GPU_CLASSES = (
    "runc",
    "crun",
    "youki",
    "gvisor",
    "runsc",
    "kata",
    "kata-clh",
    "kata-fc",
    "kata-qemu",
)
CONTAINER = "gpu-fraction-container-name"
MPS = "mps"

_ANNOTATIONS = frozenset({FRACTION, MEMORY, DEVICES, CONTAINER})
_TABLE = table("keys")
MEANT: Mapping[str, str] = _TABLE["meant"]  # the right key by a name behind a wrong prefix
_READ = frozenset(f"kai.scheduler/{name}" for name in _TABLE["read"])
# In mode NvFractions, for one container: `kai.scheduler/container.main.gpu-memory.portion.limit`.
_CONTAINER_PREFIX = "kai.scheduler/container."
# The device plugin's domain. A name in it is meant for KAI only if it is one of _ANNOTATIONS.
_PLUGIN_DOMAIN = "nvidia.com"


def right_key(key: str) -> str | None:
    """The key to write in place of a label or annotation that is meant for KAI.

    It is `key` itself if that is the queue label or an annotation for a share of a GPU, and "" if
    `key` is in KAI's domain and means nothing there. None: nothing is to be corrected, because KAI
    reads the key, or because it is not meant for KAI.
    """
    if key in _ANNOTATIONS or key == QUEUE_LABEL:
        return key
    if key in _READ or key.startswith(_CONTAINER_PREFIX):
        return None
    prefix, _, name = key.rpartition("/")
    if prefix == _PLUGIN_DOMAIN:
        return name if name in _ANNOTATIONS else None
    dashed_name = name.replace("_", "-").lower()
    if "/" not in key:
        return dashed_name if dashed_name in _ANNOTATIONS else None
    domain = prefix.lower()
    if domain in _TABLE["prefixes"] and dashed_name in MEANT:
        return MEANT[dashed_name]
    if domain not in _TABLE["domains"]:
        return None
    readable = f"kai.scheduler/{name}"
    return readable if readable in _READ else ""


def right_field(key: str, written: str) -> str:
    """The field of a pod where KAI reads this key: `label` or `annotation`.

    KAI reads queues from labels. A key in KAI's domain that KAI reads stays in the field where it
    is `written`. Every other key, such as that of a share of a GPU, belongs in the annotations.
    """
    if key == QUEUE_LABEL:
        return "label"
    return written if key in _READ else "annotation"
