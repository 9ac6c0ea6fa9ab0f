"""The platform: a host cluster with what all teams share, and how a team stack reads of it."""

from dataclasses import dataclass, field

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import NONE, ExistingObjects, by_plugin, of_own_cluster
from kai_fleet.fleet.deployed_state import DeployedState, full_name
from kai_fleet.fleet.model import Fleet
from kai_fleet.guards.components import GuardPolicies, GuardPoliciesArgs
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.host.kind_cluster import KindCluster
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.scheduling import (
    QueueTree,
    QueueTreeArgs,
    declare_scheduling,
    refuse_different_queues,
)
from kai_fleet.options import after, noted
from kai_fleet.settings.sections.access import Cluster


@dataclass
class PlatformArgs:
    """A fleet and what its stack runs now; its teams are declared by themselves. A `kubeconfig`
    that is an output stands for the one of the stack file. `existing` is what the cluster has
    already, which is used.
    """

    fleet: Fleet
    deployed: DeployedState = field(default_factory=DeployedState)
    kubeconfig: pulumi.Input[str] | None = None
    existing: ExistingObjects = NONE


class Platform(pulumi.ComponentResource):
    """The host cluster. Give what others declare on it the options of `once_ready`.

    In a team stack it is the one that the platform's stack made, and declares nothing on it. Type,
    name and provider are the same there: a team's resources find the same provider in either stack,
    and moving them between stacks replaces nothing. `guards` are None then.
    """

    args: PlatformArgs
    access: ClusterAccess
    provider: pulumi.ProviderResource
    ready: list[pulumi.Resource]
    guards: GuardPolicies | None
    transformations: list[pulumi.ResourceTransformation]

    def __init__(
        self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        fleet, cluster = args.fleet, args.fleet.cluster
        own = noted(opts, fleet.labels, fleet.annotations)
        super().__init__("kai-fleet:index:Platform", name, None, own)
        self.args = args
        self.ready, self.guards, self.transformations = [], None, []
        kubeconfig, child = args.kubeconfig, pulumi.ResourceOptions(parent=self)
        if fleet.platform:
            # The settings were read before; this shows in the stack what it depends on.
            pulumi.StackReference("platform", stack_name=full_name(fleet.platform))
        elif cluster.kind is not None:
            made = KindCluster(cluster.name, cluster.kind, child)
            kubeconfig, self.transformations = made.kubeconfig, [made.going_with_it]
        self.access = _access(cluster, kubeconfig)
        given = self.get_provider("kubernetes:core/v1:Namespace")
        self.provider = given or self.access.provider(name, child)
        if not fleet.platform:
            self._declare(name, args, opts)
        self.register_outputs({"cluster": cluster.name})

    def once_ready(self, parent: pulumi.Resource | None = None) -> pulumi.ResourceOptions:
        """The options of what is declared on it, below `parent` or the stack itself."""
        return pulumi.ResourceOptions(
            parent=parent,
            provider=self.provider,
            depends_on=self.ready,
            transformations=self.transformations,
        )

    def _declare(self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None) -> None:
        fleet, host = args.fleet, args.fleet.host
        on_host = pulumi.ResourceOptions(
            parent=self,
            provider=self.provider,
            transformations=self.transformations,
            deleted_with=opts.deleted_with if opts else None,
        )
        gpu = GpuStack(
            f"{name}-gpu",
            GpuStackArgs(
                fleet.gpu,
                in_kind=fleet.cluster.kind is not None,
                tolerations=[*fleet.tolerations],
                registries=fleet.registries,
                existing=args.existing,
            ),
            opts=on_host,
        )
        self.guards = GuardPolicies(
            f"{name}-guards", GuardPoliciesArgs(bool(host.kai)), opts=on_host
        )
        self.ready = [gpu]
        for scheduler in host.kai:
            refuse_different_queues(host.queues, args.existing)
            kai = KaiScheduler(
                f"{name}-kai",
                KaiSchedulerArgs(
                    scheduler,
                    self.access,
                    isolation=fleet.isolation,
                    cluster_policy_crd=not gpu.brings_cluster_policy,
                    existing=args.existing,
                    deployed=args.deployed,
                ),
                after(on_host, gpu),
            )
            queues = QueueTree(
                f"{name}-queues", QueueTreeArgs(host.queues, self.access), after(on_host, kai.ready)
            )
            self.ready = [gpu, kai, queues, *declare_scheduling(name, kai, on_host)]


def existing_of(
    fleet: Fleet, deployed: DeployedState, own: pulumi.ProviderResource
) -> ExistingObjects:
    """What the host of a stack has already, read by its own provider of this project."""
    if fleet.cluster.kind is not None:
        return of_own_cluster(deployed)
    return by_plugin(_access(fleet.cluster), deployed, own)


def _access(cluster: Cluster, kubeconfig: pulumi.Input[str] | None = None) -> ClusterAccess:
    if kubeconfig is None and cluster.kubeconfig is not None:
        kubeconfig = cluster.kubeconfig.get_secret_value()
    return ClusterAccess(cluster.name, context=cluster.context, kubeconfig=kubeconfig)
