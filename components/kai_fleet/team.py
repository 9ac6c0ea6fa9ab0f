"""One team: its vCluster, its share of the GPUs, its scheduler and its queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.guards.queue_guard import QueueGuard, QueueGuardArgs
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.queue_tree import QueueTree, QueueTreeArgs
from kai_fleet.kai.scheduling import declare_scheduling, values_with
from kai_fleet.releases import DEFAULT_VCLUSTER, takes_external_pod_groups
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.guard import Guard
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.queues import leaves
from kai_fleet.settings.sections.teams import Access, Vcluster
from kai_fleet.settings.sections.teams import Team as TeamSettings
from kai_fleet.settings.tenant import Tenant
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet.vcluster.virtual_cluster import (
    MOVED,
    VirtualCluster,
    VirtualClusterArgs,
)


@dataclass
class TeamArgs:
    """A team's settings, its vCluster's with the stack's defaults filled in, and the host.

    `gpu_sharing` says whether the KAI that schedules the team's pods shares GPUs. Of a team with a
    stack to itself `parent_queue` is what it is granted on the host, and `parent_shard` the shard
    that serves that queue. Its namespace is team-NAME, which is there; or `namespace`, which is
    there too; or the one that is made as `place` says, and goes with the team.
    """

    team: TeamSettings
    vcluster: Vcluster
    host: ClusterAccess
    deployed: DeployedState = field(default_factory=DeployedState)
    guard: Guard = field(default_factory=Guard)
    gpu_sharing: bool = True
    gpu_resource: str = "nvidia.com/gpu"
    parent_queue: str | None = None
    parent_shard: str | None = None
    isolation: Isolation = field(default_factory=Isolation)
    control_pool: Mapping[str, str] = field(default_factory=dict)
    namespace: pulumi.Input[str] | None = None
    place: TeamNamespaceArgs | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        name: str,
        host: ClusterAccess,
        deployed: DeployedState | None = None,
    ) -> TeamArgs:
        """The arguments of one team of a stack."""
        team = settings.teams[name]
        return cls(
            team=team,
            vcluster=settings.vcluster_of(name),
            host=host,
            deployed=deployed or DeployedState(),
            guard=settings.guard,
            gpu_resource=settings.gpu.resource,
            gpu_sharing=settings.shares_gpus(team.scheduler)
            if team.scheduler.mode == "virtual"
            else settings.kai is not None and settings.shares_gpus(settings.kai),
            parent_queue=settings.granted_queue if isinstance(settings, Tenant) else None,
            parent_shard=settings.granted_shard if isinstance(settings, Tenant) else None,
            isolation=settings.isolation_of(name),
            control_pool=settings.control_pool_of(name),
        )


class Team(pulumi.ComponentResource):
    """A team's own Kubernetes on its share of the nodes, scheduled in its mode.

    What runs in it depends on `ready`: until its queues are there, a pod would stay Pending (K16).
    """

    vcluster: VirtualCluster
    queues: list[str]
    ready: list[pulumi.Resource]

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Team", name, None, opts)
        team = args.team
        opts = opts or pulumi.ResourceOptions()
        first = pulumi.ResourceOptions(
            parent=self, depends_on=opts.depends_on, deleted_with=opts.deleted_with
        )
        if args.place is not None:
            first.depends_on = TeamNamespace(name, args.place, first).ready
        queues = [team.queue] if team.queue else []
        if team.scheduler.mode == "host" and team.queues:
            tree = QueueTreeArgs(
                team.queues,
                args.host,
                parent=args.parent_queue,
                shard=args.parent_shard,
            )
            queues = QueueTree(f"{name}-queues", tree, opts=first).leaves
        self.vcluster = VirtualCluster(
            name,
            VirtualClusterArgs(
                host=args.host,
                version=args.vcluster.version or DEFAULT_VCLUSTER,
                namespace=args.namespace,
                mode=team.scheduler.mode,
                node_pool=team.node_pool,
                access=args.vcluster.access or Access(),
                kubernetes_version=args.vcluster.kubernetes_version,
                chart=args.vcluster.chart,
                values=args.vcluster.values,
                licensed=args.vcluster.licensed,
                untested=args.vcluster.untested,
                isolation=args.isolation,
                control_pool=args.control_pool,
                deployed=args.deployed,
            ),
            opts=first,
        )
        self.ready = [self.vcluster]
        if team.scheduler.mode == "virtual" and team.scheduler.version:
            queues = self._virtual(name, args, team.scheduler.version)
        self.queues = queues
        self.summary = {
            "mode": team.scheduler.mode,
            "scheduler": team.scheduler.version,
            "namespace": self.vcluster.namespace,
            "server": self.vcluster.server,
            "gpus": team.gpus,
            "queues": queues,
        }
        self.register_outputs({"namespace": self.vcluster.namespace})

    def _virtual(self, name: str, args: TeamArgs, version: str) -> list[str]:
        """KAI of the team's own version and its queues, inside the vCluster."""
        scheduler = args.team.scheduler
        inside = pulumi.ResourceOptions(
            parent=self,
            provider=self.vcluster.provider,
            deleted_with=self.vcluster.provider,
            aliases=MOVED,
        )
        # Before the scheduler: no pod is placed that it has not seen.
        guard = self._guard(name, args, leaves(args.team.queues), inside)
        kai = KaiScheduler(
            f"{name}-kai",
            KaiSchedulerArgs(
                version=version,
                access=self.vcluster.inside,
                gpu_sharing=args.gpu_sharing,
                isolation=args.isolation,
                chart=scheduler.chart,
                values=values_with(
                    scheduler, version, scheduler.values, untested=scheduler.untested
                ),
                untested=scheduler.untested,
                deployed=args.deployed,
            ),
            opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=guard)),
        )
        declare_scheduling(
            name, scheduler, kai, self.vcluster.inside, inside, untested=scheduler.untested
        )
        tree = QueueTree(
            f"{name}-queues",
            QueueTreeArgs(args.team.queues, self.vcluster.inside, gpu_limit=args.team.gpus),
            opts=pulumi.ResourceOptions.merge(
                inside, pulumi.ResourceOptions(depends_on=[kai.ready])
            ),
        )
        self.ready.append(tree)
        return tree.leaves

    def _guard(
        self,
        name: str,
        args: TeamArgs,
        queues: list[str],
        opts: pulumi.ResourceOptions,
    ) -> list[pulumi.Resource]:
        """The guard inside the vCluster, unless it is off."""
        mode = args.guard.mode
        if mode == "off":
            return []
        guard = QueueGuardArgs(
            name,
            queues,
            mode=mode,
            gpu_sharing=args.gpu_sharing,
            pod_groups=takes_external_pod_groups(args.team.scheduler.version or ""),
            outside=args.guard.outside(queues),
            gpu_resource=args.gpu_resource,
        )
        return [QueueGuard(f"{name}-guard", guard, opts)]
