"""What a node says of itself: its GPUs, its labels, and whether pods may come to it."""

from collections.abc import Mapping

from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.quantities import parse_quantity


def gpus(node: KubeObject, resource: str) -> float:
    """How many GPUs a node advertises under that name."""
    allocatable = node.status.get("allocatable") or {}
    return float(parse_quantity(allocatable.get(resource, 0)))


def ready(node: KubeObject) -> bool:
    """Whether pods may come to a node."""
    return node.is_true("Ready") and not node.spec.get("unschedulable")


def in_pool(node: KubeObject, pool: Mapping[str, str]) -> bool:
    """Whether a node carries all the labels of a pool."""
    return all(node.labels.get(key) == value for key, value in pool.items())
