"""A team: its namespace, its vCluster, its scheduler and its queues together."""

from typing import Any, NotRequired, TypedDict

import pulumi

from kai_fleet.deployed import TEAM
from kai_fleet.guards import queue_guard
from kai_fleet.guards.policies import declare
from kai_fleet.inputs import one_of
from kai_fleet.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.options import after, child_of
from kai_fleet.queue_specs import leaves
from kai_fleet.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.virtual_cluster import VirtualCluster, VirtualClusterArgs


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


class Team(pulumi.ComponentResource):
    """A team's own Kubernetes on its share of the nodes, scheduled in its mode.

    In Python, declare what runs in it with the options of `vcluster.inside`, after `ready`: until
    its queues are there, a pod would stay Pending.
    """

    namespace: pulumi.Output[str]
    """Its namespace on the host."""
    server: pulumi.Output[str]
    """The address of its vCluster's API: `https://…`."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig of its vCluster's administrator, a secret."""
    leaves: pulumi.Output[list[str]]
    """The queues that take its pods."""

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TEAM, name, None, opts)
        first = child_of(self, opts)
        place, own = args.get("namespace"), args["vcluster"]
        if place is not None:
            # Its name stays plain, which rules read: so this is what the order comes of.
            namespace = TeamNamespace(name, place, first)
            first = pulumi.ResourceOptions(
                parent=self, depends_on=namespace, deleted_with=first.deleted_with
            )
        queues = leaves(args.get("queues", {}).get("queues", {}))
        self.ready: list[pulumi.Resource] = []
        if "host_queues" in args:
            self.ready.append(QueueTree(f"{name}-queues", args["host_queues"], first))
        self.vcluster = VirtualCluster(name, own, first)
        self.ready.append(self.vcluster)
        inside = self.vcluster.inside(self)
        guard = _guard(name, args["guard"], queues, inside) if "guard" in args else []
        if "kai" in args:
            probes: Any = {"probe_environment": self.vcluster.probe_environment}
            # After the guard: no pod is placed that it has not seen.
            kai = KaiScheduler(name, {**probes, **args["kai"]}, after(inside, *guard))
            self.ready.append(kai)
            inside = after(inside, kai)
        if "queues" in args:
            way_in = {"kubeconfig": self.vcluster.kubeconfig, "cluster": self.vcluster.cluster}
            tree: Any = {**way_in, **args["queues"]}
            self.ready.append(QueueTree(f"{name}-queues", tree, inside))
        if "host_queues" in args:
            queues = leaves(args["host_queues"]["queues"])
        self.namespace, self.server = self.vcluster.namespace, self.vcluster.server
        self.kubeconfig, self.leaves = self.vcluster.kubeconfig, pulumi.Output.from_input(queues)
        self.register_outputs({"namespace": self.namespace})


def _guard(
    name: str, args: QueueGuardArgs, leaves: list[str], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """The queue policies of a vCluster with the team's bounds in them, and their bindings."""
    team = f"Team {name}"
    one_of(team, "guard.mode", args.get("mode", "deny"), ("deny", "audit"))
    one_of(team, "guard.outside", args.get("outside", "deny"), ("deny", "warn", "allow"))
    of_team, bindings = queue_guard.inside(name, args.get("queues", leaves), args)
    return declare(f"{name}-guard", of_team, bindings, opts)
