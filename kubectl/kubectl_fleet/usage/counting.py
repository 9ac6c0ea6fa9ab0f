"""The usage of a cluster, counted from what it answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kubectl_fleet.releases import KAI, KaiRelease, UnknownVersionError, kai
from kubectl_fleet.releases.keys import KAI_NAMESPACE
from kubectl_fleet.usage.beyond import marked
from kubectl_fleet.usage.devices import NodeGpus, gpus_of
from kubectl_fleet.usage.pods import PodUse, pods_of
from kubectl_fleet.usage.queues import QueueUse, by_queue, by_status, tree
from kubectl_fleet.usage.reading import ClusterObjects
from kubectl_fleet.usage.requests import gpu_memory

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


def count(cluster: ClusterObjects) -> ClusterUsage:
    """Count pods, queues and GPUs. A kind that is not there counts nothing."""
    release = _release(cluster)
    in_megabytes = (release or _NEWEST).gpu_memory_in_megabytes
    nodes, items, queues = cluster.all("nodes"), cluster.all("pods"), cluster.all("queues")
    memories = {
        node["metadata"]["name"]: gpu_memory(node["metadata"].get("labels") or {}, in_megabytes)
        for node in nodes
    }
    partly = cluster.namespace is not None or "pods" in cluster.forbidden
    pods = marked(pods_of(items, cluster.all("podgroups"), memories), items, nodes, queues)
    return ClusterUsage(
        pods=tuple(pods),
        queues=tree(queues, by_status(queues) if partly else by_queue(pods)),
        gpus=gpus_of(pods, items, nodes, memories),
        release=release,
        counted_from="status" if partly else "pods",
    )


def _release(cluster: ClusterObjects) -> KaiRelease | None:
    """The KAI that runs, by the tag of an image; None for none, or for one not in the table."""
    deployments = {
        item["metadata"]["name"]: item
        for item in cluster.all("deployments")
        if item["metadata"].get("namespace", KAI_NAMESPACE) == KAI_NAMESPACE
    }
    name = next((name for name in _WITH_VERSION if name in deployments), None)
    try:
        return kai(_tag(deployments[name]), untested=True) if name else None
    except UnknownVersionError:
        return None


def _tag(deployment: Mapping[str, Any]) -> str:
    template = (deployment.get("spec") or {}).get("template", {}).get("spec") or {}
    images = [str(container.get("image", "")) for container in template.get("containers") or []]
    return images[0].partition("@")[0].rpartition(":")[2] if images else ""
