"""Pods that can never run: they ask for more GPUs than any node has, or their queues may hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from kubectl_fleet.usage.amounts import UNLIMITED, in_words
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.requests import numbers, whole_gpus

Object = Mapping[str, Any]
_SLACK: Final = 1e-6  # of a GPU: what counting in fractions may be off by


def marked(
    pods: Iterable[PodUse],
    items: Iterable[Object],
    nodes: Sequence[Object],
    queues: Sequence[Object],
) -> list[PodUse]:
    """The pods, those that never run with why. `items` are all pods of the cluster.

    A node counts that is not Ready, because it may be again; where none is there, one may be added.
    """
    selectors = {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): item["spec"].get(
            "nodeSelector"
        )
        for item in items
        if item.get("spec") and not item["spec"].get("nodeName")
    }
    largest = _largest(nodes)
    specs = {item["metadata"]["name"]: item.get("spec") or {} for item in queues}
    found = []
    for pod in pods:
        never = ""
        if pod.waits and pod.amounts.gpu:
            selector = selectors.get((pod.namespace, pod.name)) or {}
            never = _never(pod, specs, largest(frozenset(selector.items())))
        found.append(replace(pod, never=never) if never else pod)
    return found


def _never(pod: PodUse, specs: Mapping[str, Object], most: float) -> str:
    """`most` are the GPUs of the largest node that the pod may run on."""
    if pod.scheduled_by_kai:
        for name, limit in _limits(pod.queue, specs):
            if limit != UNLIMITED and pod.amounts.gpu > limit + _SLACK:
                wants = in_words("gpu", pod.amounts.gpu)
                return f"it asks for {wants}, and queue {name} may hold at most {limit:g}"
    devices = pod.gpu.devices if pod.gpu.shared else pod.gpu.whole
    if most and devices > most:
        return f"it asks for {in_words('gpu', devices)}, and no node has more than {most:g}"
    return ""


def _largest(nodes: Sequence[Object]) -> Callable[[frozenset[tuple[str, str]]], float]:
    """The GPUs of the largest node with some labels. Pods choose nodes by a few sets of them."""
    sizes = [
        (
            (node["metadata"].get("labels") or {}).items(),
            whole_gpus(numbers((node.get("status") or {}).get("allocatable"))),
        )
        for node in nodes
    ]

    @cache
    def largest(selector: frozenset[tuple[str, str]]) -> float:
        return max((gpus for labels, gpus in sizes if selector <= labels), default=0.0)

    return largest


def _limits(queue: str | None, specs: Mapping[str, Object]) -> Iterator[tuple[str, float]]:
    """The limits of GPUs of a queue and of those above it; what is not written is 0."""
    seen: set[str] = set()
    while queue is not None and queue in specs and queue not in seen:
        seen.add(queue)
        gpu = (specs[queue].get("resources") or {}).get("gpu") or {}
        yield queue, float(gpu.get("limit") or 0)
        queue = specs[queue].get("parentQueue") or None
