"""Who holds what of a cluster, as the commands show it, and what could not be read."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from kai_usage import cluster_usage, trees
from kai_usage.pods import Pod
from kai_usage.queues import Queue
from kubectl_fleet.cluster import Snapshot
from kubectl_fleet.kubeconfig import UserError

# What is not known if a list is forbidden.
_UNKNOWN_WITHOUT = {
    "nodes": "how many GPUs there are is not known, and a share of memory counts as a whole GPU",
    "pods": "who holds what is not known",
    "queues": "quotas and limits are not known",
    "podgroups": "the queue of a pod is the one of its label",
    "events": "why a pod waits may be known to them only",
}
# Larger trees are refused. KAI is run with some hundred queues on four levels.
_MAX_QUEUES = 5000
_MAX_LEVELS = 32


class Usage:
    """Who holds what of a cluster, and who waits.

    What is in use is counted from pods that have a node and have not ended. If not all pods may be
    listed, it is what KAI's queue controller writes into the status of the Queues.

    Attributes:
        snapshot: The reading of the cluster that was counted.
        version: The version of KAI; None if none runs here, if its image has no tag, or if
            Deployments may not be listed.
        pods: Pods that have not ended, shown or not, without those of Kubernetes, KAI and the GPU
            operator.
        gpu_nodes: Nodes that advertise GPUs, or have pods that hold or reserve some, by name,
            sorted.
        queues: Queues by name, parents before their children.
        elsewhere: Queues that pods of KAI name and that cannot be seen here, such as the host's, or
            that are absent, sorted by name. Their quotas are not known: -1 means nothing there.
            Empty if the pods of one namespace alone may be listed and any queue is known.

    Raises:
        UserError: The tree has more queues or levels than are shown.
        LookupError, TypeError, AttributeError, ValueError, ArithmeticError: An object is malformed.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        number = len(snapshot.all("queues"))
        if number > _MAX_QUEUES:
            raise UserError(f"the cluster has {number} queues; at most {_MAX_QUEUES} are shown")
        counted = cluster_usage.count(snapshot.objects, by_status=snapshot.pods_of_one_namespace)
        for queue in counted.queues.values():
            if queue.level > _MAX_LEVELS:
                raise UserError(
                    f"queue {queue.name} is on level {queue.level} of the tree; at most"
                    f" {_MAX_LEVELS} levels are shown"
                )
        self.version = counted.version
        self.pods = counted.pods
        holding = {pod.node for pod in counted.pods if pod.gpu_amount}
        self.gpu_nodes = {
            name: node
            for name, node in sorted(counted.nodes.items())
            if node.count or node.shared or name in holding
        }
        self.queues = counted.queues
        self.elsewhere = list[Queue]()
        if not (snapshot.pods_of_one_namespace and self.queues):
            names = sorted(counted.queues_of_pods.keys() - self.queues.keys())
            self.elsewhere = [counted.queues_of_pods[name] for name in names]

    @property
    def shown_pods(self) -> list[Pod]:
        """The pods in namespaces that are shown."""
        return [pod for pod in self.pods if self.snapshot.shows(pod.namespace)]

    @cached_property
    def shown_pods_by_node(self) -> dict[str | None, list[Pod]]:
        """`shown_pods` by the name of the node; by None those that wait; empty for other names."""
        pods: dict[str | None, list[Pod]] = defaultdict(list)
        for pod in self.shown_pods:
            pods[pod.node].append(pod)
        return pods

    @property
    def notes(self) -> Iterator[str]:
        """Sentences about what could not be read, and about a KAI that does not run here.

        They are about the kinds of `_UNKNOWN_WITHOUT` alone, and say whether only the pods of one
        namespace may be listed. Empty if there is nothing to say.
        """
        view = self.snapshot
        for kind, without in _UNKNOWN_WITHOUT.items():
            if kind in view.forbidden:
                yield f"you may not list {kind}: {without}"
        if view.pods_of_one_namespace and "pods" in view.objects:
            source = "; what queues hold is what KAI says of them" if self.queues else ""
            yield f"you may list pods of namespace {view.namespace} only{source}"
        if not view.has_queue_api and any(pod.by_kai for pod in self.pods):
            yield (
                "KAI runs on the host and not here, and so do its queues: what they may hold, and"
                " who else is on a GPU, can't be seen from here; ask the platform's engineers"
            )
        elif not view.has_queue_api:
            yield "no KAI runs here: there are no queues"

    @cached_property
    def leaves(self) -> list[str]:
        """The names of the queues that pods may name, those without children, sorted."""
        return sorted(queue.name for queue in self.queues.values() if not queue.children)

    @cached_property
    def leaves_below(self) -> dict[str, list[str]]:
        """The names of the leaves below each queue, sorted; an empty list for any other name."""
        parents = {queue.name: queue.parent for queue in self.queues.values()}
        return trees.leaves_below(parents, self.leaves)
