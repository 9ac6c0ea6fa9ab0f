"""The arguments of a team: its namespace, its vCluster, its scheduler and its queues together."""

from typing import NotRequired, TypedDict

import pulumi

from kai_fleet.kai_scheduler import KaiSchedulerArgs
from kai_fleet.queue_tree import QueueTreeArgs
from kai_fleet.team_namespace import TeamNamespaceArgs
from kai_fleet.virtual_cluster import VirtualClusterArgs


class QueueGuardArgs(TypedDict):
    """The ValidatingAdmissionPolicies inside a vCluster: pods name a leaf queue of the team."""

    queues: NotRequired[list[pulumi.Input[str]]]
    """Leaf queues that pods may name. Default: those of the team's tree."""
    mode: NotRequired[str]
    """Pods that name a wrong queue: `deny`; `audit` warns, for roll-out. Default: `deny`."""
    outside: NotRequired[str]
    """Pods that ask for GPUs without KAI: `deny`, `warn` or `allow`. Default: `deny`."""
    pod_groups: NotRequired[bool]
    """Pods may name a PodGroup in place of a queue, as KAI from v0.15 reads it. Default: false."""
    gpu_sharing: NotRequired[pulumi.Input[bool]]
    """KAI gives parts of a GPU. Default: true."""
    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""


class TeamArgs(TypedDict):
    """A team. What one part gives another, such as the kubeconfig, is filled in."""

    vcluster: VirtualClusterArgs
    """Its vCluster, and how the host is reached."""
    namespace: NotRequired[TeamNamespaceArgs]
    """Its namespace on the host. Default: it is there, as `vcluster.namespace`."""
    kai: NotRequired[KaiSchedulerArgs]
    """KAI inside its vCluster. Default: none; the host places its pods."""
    queues: NotRequired[QueueTreeArgs]
    """Queues inside its vCluster, once its KAI works. Default: none."""
    host_queues: NotRequired[QueueTreeArgs]
    """Queues of the host's KAI that it declares itself, with a stack of its own. Default: none."""
    guard: NotRequired[QueueGuardArgs]
    """Guard of the queues inside its vCluster. Default: none."""
