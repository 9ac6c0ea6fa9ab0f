"""What a host cluster has for everybody: its GPU stack, and KAI with its queues in host mode."""

from dataclasses import dataclass, field

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import NONE, ExistingObjects, by_plugin, of_own_cluster
from kai_fleet.cluster.noted import noted
from kai_fleet.fleet.model import Fleet
from kai_fleet.guards.guard_policies import GuardPolicies, GuardPoliciesArgs
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.host.kind_cluster import KindCluster, KindClusterArgs
from kai_fleet.host.platform_reference import ReferencedPlatform
from kai_fleet.kai.kai_of_others import refuse_different_queues
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.kai.scheduling import declare_scheduling
from kai_fleet.state.deployed_state import DeployedState


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
    """The host cluster. Pass `provider` and `transformations` on to the teams, and depend on
    `ready`.
    """

    access: ClusterAccess
    provider: pulumi.ProviderResource
    ready: list[pulumi.Resource]
    guards: GuardPolicies
    transformations: list[pulumi.ResourceTransformation]

    def __init__(
        self, name: str, args: PlatformArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        own = noted(opts, args.fleet.labels, args.fleet.annotations)
        super().__init__("kai-fleet:index:Platform", name, None, own)
        cluster, gpu_stack, host = args.fleet.cluster, args.fleet.gpu, args.fleet.host
        self.transformations = []
        kubeconfig = args.kubeconfig
        if kubeconfig is None and cluster.kubeconfig is not None:
            kubeconfig = cluster.kubeconfig.get_secret_value()
        if cluster.kind is not None:
            made = KindCluster(
                cluster.name,
                KindClusterArgs(cluster.kind),
                opts=pulumi.ResourceOptions(parent=self),
            )
            kubeconfig, self.transformations = made.kubeconfig, [made.going_with_it]
        self.access = ClusterAccess(cluster.name, context=cluster.context, kubeconfig=kubeconfig)
        given = self.get_provider("kubernetes:core/v1:Namespace")
        self.provider = given or self.access.provider(name, pulumi.ResourceOptions(parent=self))
        on_host = pulumi.ResourceOptions(
            parent=self,
            provider=self.provider,
            transformations=self.transformations,
            deleted_with=opts.deleted_with if opts else None,
        )
        gpu = GpuStack(
            f"{name}-gpu",
            GpuStackArgs(
                provider=gpu_stack.provider,
                version=gpu_stack.version,
                chart=gpu_stack.chart,
                values=gpu_stack.values,
                system_priorities=gpu_stack.system_priorities,
                in_kind=cluster.kind is not None,
                tolerations=[*args.fleet.tolerations],
                registries=args.fleet.registries,
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
                    isolation=args.fleet.isolation,
                    cluster_policy_crd=not gpu.brings_cluster_policy,
                    existing=args.existing,
                    deployed=args.deployed,
                ),
                opts=pulumi.ResourceOptions.merge(
                    on_host, pulumi.ResourceOptions(depends_on=[gpu])
                ),
            )
            queues = QueueTree(
                f"{name}-queues",
                QueueTreeArgs(host.queues, self.access),
                opts=pulumi.ResourceOptions.merge(
                    on_host, pulumi.ResourceOptions(depends_on=[kai.ready])
                ),
            )
            scheduling = declare_scheduling(name, scheduler, kai, self.access, on_host)
            self.ready = [gpu, kai, queues, *scheduling]
        self.register_outputs({"cluster": cluster.name})


def existing_of(
    fleet: Fleet, deployed: DeployedState, own: pulumi.ProviderResource
) -> ExistingObjects:
    """What the host of a stack has already, read by its own provider of this project."""
    cluster = fleet.cluster
    if cluster.kind is not None:
        return of_own_cluster(deployed)
    kubeconfig = cluster.kubeconfig.get_secret_value() if cluster.kubeconfig else None
    access = ClusterAccess(cluster.name, context=cluster.context, kubeconfig=kubeconfig)
    return by_plugin(access, deployed, own)


def platform_of(
    fleet: Fleet,
    deployed: DeployedState,
    existing: ExistingObjects,
    opts: pulumi.ResourceOptions | None = None,
) -> Platform | ReferencedPlatform:
    """The stack's own platform, or a team stack's view of the one that it is on."""
    if fleet.platform:
        return ReferencedPlatform("host", fleet, opts)
    return Platform("host", PlatformArgs(fleet, deployed, existing=existing), opts)
