"""The usage of a cluster, counted from what it answered."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal

from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.releases import KAI, KaiRelease, UnknownVersionError, kai
from kubectl_fleet.releases.keys import KAI_NAMESPACE
from kubectl_fleet.usage.amounts import SLACK, UNLIMITED, in_words
from kubectl_fleet.usage.devices import NodeGpus, gpus_of
from kubectl_fleet.usage.pods import PodUse, pods_of
from kubectl_fleet.usage.queues import QueueUse, by_queue, by_status, tree
from kubectl_fleet.usage.requests import gpu_memory, numbers, whole_gpus

_NEWEST: Final = list(KAI.values())[-1]
_WITH_VERSION: Final = ("kai-operator", "scheduler", "kai-scheduler-default", "binder")


@dataclass(frozen=True)
class ClusterUsage:
    """One cluster at one moment.

    `queues` are in the order of the tree, parents before their children, and empty where the
    cluster has none or they may not be listed. `gpus` are by node. `release` is the KAI that runs
    there, None where that is not known.

    What is in use is counted from pods that have a node and are not ended. Where not all pods may
    be listed, it is what the status of the Queues says (`counted_from`). From v0.7 to v0.17 that
    status counts a fraction of several devices (`gpu-fraction-num-devices`) as one, MIG devices not
    at all, and a share of memory otherwise than KAI's scheduler does
    (`pkg/podgroupcontroller/controllers/resources/fraction.go`).
    """

    pods: tuple[PodUse, ...] = ()
    queues: Mapping[str, QueueUse] = field(default_factory=dict)
    gpus: Mapping[str, NodeGpus] = field(default_factory=dict)
    release: KaiRelease | None = None
    counted_from: Literal["pods", "status"] = "pods"

    @property
    def waiting(self) -> list[PodUse]:
        """The pods without a node, with those that never get one."""
        return [pod for pod in self.pods if pod.waits]


def count(objects: Mapping[str, Sequence[KubeObject]], *, partly: bool = False) -> ClusterUsage:
    """Count pods, queues and GPUs. A kind that is not there counts nothing.

    `partly`: not all pods of the cluster are there.
    """
    release = _release(objects.get("deployments", ()))
    in_megabytes = (release or _NEWEST).gpu_memory_in_megabytes
    nodes, items, queues = (objects.get(kind, ()) for kind in ("nodes", "pods", "queues"))
    memories = {node.name: gpu_memory(node.labels, in_megabytes) for node in nodes}
    pods = _marked(pods_of(items, objects.get("podgroups", ()), memories), items, nodes, queues)
    return ClusterUsage(
        pods=tuple(pods),
        queues=tree(queues, by_status(queues) if partly else by_queue(pods)),
        gpus=gpus_of(pods, items, nodes, memories),
        release=release,
        counted_from="status" if partly else "pods",
    )


def running_version(deployments: Iterable[KubeObject]) -> str | None:
    """The version of the KAI that runs, by the image of its operator or scheduler."""
    own = {it.name: it for it in deployments if it.namespace in (KAI_NAMESPACE, "")}
    return next((own[name].image_tag for name in _WITH_VERSION if name in own), None)


def _release(deployments: Iterable[KubeObject]) -> KaiRelease | None:
    """The KAI that runs; None for none, or for one not in the table."""
    version = running_version(deployments)
    try:
        return kai(version, untested=True) if version else None
    except UnknownVersionError:
        return None


def _marked(
    pods: Iterable[PodUse],
    items: Iterable[KubeObject],
    nodes: Sequence[KubeObject],
    queues: Sequence[KubeObject],
) -> list[PodUse]:
    """The pods, those that never run with why. `items` are all pods of the cluster.

    A node counts that is not Ready, because it may be again; where none is there, one may be added.
    """
    selectors = {
        (item.namespace, item.name): item.spec.get("nodeSelector")
        for item in items
        if not item.spec.get("nodeName")
    }
    largest = _largest(nodes)
    specs = {item.name: item.spec for item in queues}
    found = []
    for pod in pods:
        never = ""
        if pod.waits and pod.amounts.gpu:
            selector = selectors.get((pod.namespace, pod.name)) or {}
            never = _never(pod, specs, largest(frozenset(selector.items())))
        found.append(replace(pod, never=never) if never else pod)
    return found


def _never(pod: PodUse, specs: Mapping[str, Mapping[str, Any]], most: float) -> str:
    """`most` are the GPUs of the largest node that the pod may run on."""
    if pod.scheduled_by_kai:
        for name, limit in _limits(pod.queue, specs):
            if limit != UNLIMITED and pod.amounts.gpu > limit + SLACK:
                wants = in_words("gpu", pod.amounts.gpu)
                return f"it asks for {wants}, and queue {name} may hold at most {limit:g}"
    devices = pod.gpu.devices if pod.gpu.shared else pod.gpu.whole
    if most and devices > most:
        return f"it asks for {in_words('gpu', devices)}, and no node has more than {most:g}"
    return ""


def _largest(nodes: Sequence[KubeObject]) -> Callable[[frozenset[tuple[str, str]]], float]:
    """The GPUs of the largest node with some labels. Pods choose nodes by a few sets of them."""
    sizes = [
        (node.labels.items(), whole_gpus(numbers(node.status.get("allocatable")))) for node in nodes
    ]

    @cache
    def largest(selector: frozenset[tuple[str, str]]) -> float:
        return max((gpus for labels, gpus in sizes if selector <= labels), default=0.0)

    return largest


def _limits(
    queue: str | None, specs: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, float]]:
    """The limits of GPUs of a queue and of those above it; what is not written is 0."""
    seen: set[str] = set()
    while queue is not None and queue in specs and queue not in seen:
        seen.add(queue)
        gpu = (specs[queue].get("resources") or {}).get("gpu") or {}
        yield queue, float(gpu.get("limit") or 0)
        queue = specs[queue].get("parentQueue") or None
