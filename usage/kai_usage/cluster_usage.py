"""Who holds what of a cluster, and who waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kai_usage.deployments import kai_version
from kai_usage.nodes import Node, add_pods, read_nodes
from kai_usage.objects import Object
from kai_usage.pods import Pod, read_pods
from kai_usage.queues import Queue, add_use, count_pods, count_status, read_queues


@dataclass(frozen=True)
class ClusterUsage:
    """The pods, nodes and queues of a cluster, and the KAI that runs.

    Attributes:
        version: The version of KAI, as `kai_version` gives it; None if none runs, if its image has
            no tag, and if Deployments were not read.
        pods: Pods that have not ended, without those of Kubernetes, KAI and the GPU operator.
        nodes: Nodes by name, also those without GPUs, and those that only pods with GPUs, or
            reservation pods, name.
        queues: Queues by name, parents before their children, with their use.
        queues_of_pods: Queues that pods of KAI name, in the tree or not, with what these pods hold
            and wait for, as `count_pods` gives them; without tree and quotas.
    """

    version: str | None
    pods: Sequence[Pod]
    nodes: Mapping[str, Node]
    queues: Mapping[str, Queue]
    queues_of_pods: Mapping[str, Queue]


def count(
    objects: Mapping[str, Sequence[Object]],
    *,
    by_status: bool = False,
) -> ClusterUsage:
    """Count what the pods of a cluster hold and wait for.

    `objects` has lists by the plural of their kind: nodes, pods, queues, podgroups, deployments. A
    kind without a list counts as empty. Deployments need only be those of KAI's namespace. With
    `by_status`, because not all pods may be listed, `queues` hold what the status of the Queues
    says, and have no numbers of pods; nodes and `queues_of_pods` count the listed pods all the
    same. `objects` stay as they are. Raises what `objects.py` says for a malformed object.
    """
    pod_items = objects.get("pods", ())
    queue_items = objects.get("queues", ())
    version = kai_version(objects.get("deployments", ()))
    nodes = read_nodes(objects.get("nodes", ()), version)
    memories = {name: node.kai_memory for name, node in nodes.items()}
    pods = read_pods(pod_items, objects.get("podgroups", ()), memories)
    add_pods(nodes, pods, pod_items)
    queues = read_queues(queue_items)
    queues_of_pods = count_pods(pods)
    if by_status:
        add_use(queues, count_status(queue_items))
    else:
        add_use(queues, queues_of_pods)
    return ClusterUsage(
        version=version,
        pods=pods,
        nodes=nodes,
        queues=queues,
        queues_of_pods=queues_of_pods,
    )
