"""A team: its namespace, its vCluster, its scheduler and its queues together; its workloads."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NotRequired, TypedDict

import pulumi

from kai_fleet import kai_scheduler, queue_tree, team_namespace, virtual_cluster
from kai_fleet.argument_check import Allowed, check
from kai_fleet.guards import queue_guard
from kai_fleet.guards.policies import declare
from kai_fleet.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.names import TEAM
from kai_fleet.options import after, child_of, component_options
from kai_fleet.queue_specs import leaves
from kai_fleet.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.releases import takes_external_pod_groups
from kai_fleet.settings.files.manifests import name_of, type_of
from kai_fleet.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.virtual_cluster import VirtualCluster, VirtualClusterArgs

# Kinds of manifests that other objects depend on: declared first.
_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_ALLOWED: Final = Allowed(
    choices={
        **virtual_cluster.ALLOWED.below("vcluster"),
        **team_namespace.ALLOWED.below("namespace"),
        **kai_scheduler.ALLOWED.below("kai"),
        "guard.mode": ("deny", "audit"),
        "guard.outside": ("deny", "warn", "allow"),
    },
    needs=virtual_cluster.ALLOWED.needs,
    short=queue_tree.ALLOWED.short,
    quantities=queue_tree.ALLOWED.quantities,
)


class QueueGuardArgs(TypedDict):
    """The ValidatingAdmissionPolicies inside a vCluster: pods name a leaf queue of the team, and
    share GPUs where its KAI does.
    """

    mode: NotRequired[str]
    """Pods that name a wrong queue: `deny`; `audit` warns, for roll-out. Default: `deny`."""
    outside: NotRequired[str]
    """Pods that ask for GPUs without KAI: `deny`, `warn` or `allow`. Default: `deny`."""
    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""


class TeamArgs(TypedDict):
    """The parts of a team. What one needs of another, such as the kubeconfig, is filled in."""

    vcluster: VirtualClusterArgs
    """Its vCluster, with the kubeconfig or context of the host."""
    namespace: NotRequired[TeamNamespaceArgs]
    """Its namespace on the host. Default: `vcluster.namespace`, which exists."""
    kai: NotRequired[KaiSchedulerArgs]
    """KAI inside its vCluster. Default: none; a scheduler of the host places its pods."""
    queues: NotRequired[QueueTreeArgs]
    """Queues inside its vCluster, created once its KAI is ready. Default: none."""
    host_queues: NotRequired[QueueTreeArgs]
    """Queues of the host's KAI that a team with a stack of its own declares. Default: none."""
    guard: NotRequired[QueueGuardArgs]
    """Admission guard for queues inside its vCluster. Default: none."""


class Team(pulumi.ComponentResource):
    """A team's own Kubernetes on its share of the nodes, scheduled in its mode.

    In Python, declare workloads with the options of `vcluster.inside`, depending on `ready`: a pod
    without its queue stays Pending.
    """

    namespace: pulumi.Output[str]
    """Its namespace on the host."""
    server: pulumi.Output[str]
    """The address of its vCluster's API: `https://…`."""
    kubeconfig: pulumi.Output[str]
    """Administrator's kubeconfig of its vCluster, a secret."""
    leaves: pulumi.Output[list[str]]
    """Names of its leaf queues, which pods may name."""

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(TEAM, name, None, component_options(opts))
        check(f"Team {name}", TeamArgs, args, _ALLOWED)
        first, self.ready = child_of(self, opts), list[pulumi.Resource]()
        if (namespace_args := args.get("namespace")) is not None:
            # `vcluster.namespace` stays plain text, which rules read, so depends_on has the order.
            namespace = TeamNamespace(name, namespace_args, first)
            first = after(child_of(self, opts, ordered=False), namespace)
        if "host_queues" in args:
            self.ready.append(QueueTree(f"{name}-queues", args["host_queues"], first))
        vcluster = self.vcluster = VirtualCluster(name, args["vcluster"], first)
        self.ready.append(vcluster)
        inside, before = vcluster.inside(self), list[pulumi.Resource]()
        queues = leaves(args.get("queues", {}).get("queues", {}))
        if (guard := args.get("guard")) is not None:
            kai: Any = args.get("kai", {"version": ""})
            bounds = {**guard, "gpu_sharing": kai.get("gpu_sharing", True)}
            bounds["pod_groups"] = takes_external_pod_groups(kai["version"])
            before = declare(f"{name}-guard", *queue_guard.inside(name, queues, bounds), inside)
        if "kai" in args:
            probes: Any = {"probe_environment": vcluster.probe_environment, **args["kai"]}
            # After the guard, so that it checks every pod that KAI places.
            before = [KaiScheduler(name, probes, after(inside, *before))]
            self.ready += before
        if "queues" in args:
            access = {"kubeconfig": vcluster.kubeconfig, "cluster": vcluster.cluster}
            tree: Any = {**access, **args["queues"]}
            self.ready.append(QueueTree(f"{name}-queues", tree, after(inside, *before)))
        elif "host_queues" in args:
            queues = leaves(args["host_queues"]["queues"])
        self.namespace, self.server = vcluster.namespace, vcluster.server
        self.kubeconfig, self.leaves = vcluster.kubeconfig, pulumi.Output.from_input(queues)
        self.register_outputs({"namespace": self.namespace})


def declare_manifests(
    name: str, files: Mapping[str, Sequence[Mapping[str, Any]]], team: Team
) -> None:
    """Declare the objects of these files, after the team's queues.

    Each is one resource, so that a preview shows it, rules check it, and removing it from a file
    deletes it. Not by `yaml.v2.ConfigGroup`, which reads the API of a running cluster: an offline
    plan and a new vCluster have none.
    """
    documents = [document for file in files.values() for document in file]
    opts = after(team.vcluster.inside(team), *team.ready)
    first = [_declare(name, manifest, opts) for manifest in documents if manifest["kind"] in _FIRST]
    for manifest in documents:
        if manifest["kind"] not in _FIRST:
            _declare(name, manifest, after(opts, *first))


def _declare(
    team: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """Declare one object."""
    props = dict(manifest)
    hidden = {"data", "stringData"} if manifest["kind"] == "Secret" else set[str]()
    props |= {key: pulumi.Output.secret(props[key]) for key in hidden & props.keys()}
    return pulumi.CustomResource(type_of(manifest), name_of(team, manifest), props, opts)
