"""What a host cluster has for everybody: its GPU stack, and KAI with its queues in host mode."""

from __future__ import annotations

from dataclasses import dataclass, field

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.guards.guard_policies import GuardPolicies, GuardPoliciesArgs
from kai_fleet.host.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.host.kind_cluster import KindCluster, KindClusterArgs
from kai_fleet.host.platform_reference import PlatformReference
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.kai.scheduling import declare_scheduling, values_with
from kai_fleet.settings import Settings
from kai_fleet.settings.tenant import Tenant
from kai_fleet.state.deployed_state import DeployedState


@dataclass
class PlatformArgs:
    """A stack's settings and what it runs now; its teams are declared by themselves. A `kubeconfig`
    that is an output stands for the one of the settings.
    """

    settings: Settings
    deployed: DeployedState = field(default_factory=DeployedState)
    kubeconfig: pulumi.Input[str] | None = None


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
        super().__init__("kai-fleet:index:Platform", name, None, opts)
        settings = args.settings
        cluster = settings.cluster
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
                provider=settings.gpu.provider,
                version=settings.gpu.version,
                chart=settings.gpu.chart,
                values=settings.gpu.values,
                in_kind=cluster.kind is not None,
            ),
            opts=on_host,
        )
        self.guards = GuardPolicies(
            f"{name}-guards", GuardPoliciesArgs(settings.kai is not None), opts=on_host
        )
        self.ready = [gpu]
        if settings.kai is not None:
            kai = KaiScheduler(
                f"{name}-kai",
                KaiSchedulerArgs(
                    version=settings.kai.version,
                    access=self.access,
                    gpu_sharing=settings.shares_gpus(settings.kai),
                    isolation=settings.isolation,
                    chart=settings.kai.chart,
                    values=values_with(
                        settings.kai,
                        settings.kai.version,
                        settings.kai.values,
                        untested=settings.kai.untested,
                    ),
                    cluster_policy_crd=not gpu.brings_cluster_policy,
                    untested=settings.kai.untested,
                    deployed=args.deployed,
                ),
                opts=pulumi.ResourceOptions.merge(
                    on_host, pulumi.ResourceOptions(depends_on=[gpu])
                ),
            )
            queues = QueueTree(
                f"{name}-queues",
                QueueTreeArgs(settings.queues, self.access, limits=settings.queue_limits()),
                opts=pulumi.ResourceOptions.merge(
                    on_host, pulumi.ResourceOptions(depends_on=[kai.ready])
                ),
            )
            scheduling = declare_scheduling(
                name, settings.kai, kai, self.access, on_host, untested=settings.kai.untested
            )
            self.ready = [gpu, kai, queues, *scheduling]
        self.register_outputs({"cluster": cluster.name})


def platform_of(
    settings: Settings, deployed: DeployedState, opts: pulumi.ResourceOptions | None = None
) -> Platform | PlatformReference:
    """The stack's own platform, or a team stack's view of the one that it is on."""
    if isinstance(settings, Tenant):
        return PlatformReference("host", settings, opts)
    return Platform("host", PlatformArgs(settings, deployed), opts)
