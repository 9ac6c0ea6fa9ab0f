"""One team: its vCluster, its share of the GPUs, its scheduler and its queues."""

from __future__ import annotations

from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as kubernetes

from components.cluster_access import ClusterAccess
from components.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from components.past import Past
from components.queue_guard import QueueGuard, QueueGuardArgs
from components.queue_tree import QueueTree, QueueTreeArgs
from components.releases import DEFAULT_VCLUSTER
from components.scheduling import declare_scheduling, values_with
from components.settings import Settings
from components.settings.guard import Guard
from components.settings.queues import leaves
from components.settings.teams import Access, Vcluster
from components.settings.teams import Team as TeamSettings
from components.settings.tenant import Tenant
from components.virtual_cluster import VirtualCluster, VirtualClusterArgs


@dataclass
class TeamArgs:
    """A team's settings, its vCluster's with the stack's defaults filled in, and the host.

    `gpu_sharing` says whether the KAI that schedules the team's pods shares GPUs, `own_stack`
    whether the team has a stack to itself; `parent_queue` is then what it is granted on the host,
    and `parent_shard` the shard that serves that queue.
    """

    team: TeamSettings
    vcluster: Vcluster
    host: ClusterAccess
    gpu_resource: str = "nvidia.com/gpu"
    past: Past = field(default_factory=Past)
    guard: Guard = field(default_factory=Guard)
    gpu_sharing: bool = True
    own_stack: bool = False
    parent_queue: str | None = None
    parent_shard: str | None = None

    @classmethod
    def of(
        cls, settings: Settings, name: str, host: ClusterAccess, past: Past | None = None
    ) -> TeamArgs:
        """The arguments of one team of a stack."""
        team = settings.teams[name]
        return cls(
            team=team,
            vcluster=settings.vcluster_of(name),
            host=host,
            gpu_resource=settings.gpu.resource,
            past=past or Past(),
            guard=settings.guard,
            gpu_sharing=settings.shares_gpus(team.scheduler)
            if team.scheduler.mode == "virtual"
            else settings.kai is not None and settings.shares_gpus(settings.kai),
            own_stack=isinstance(settings, Tenant),
            parent_queue=settings.granted_queue if isinstance(settings, Tenant) else None,
            parent_shard=settings.granted_shard if isinstance(settings, Tenant) else None,
        )


class Team(pulumi.ComponentResource):
    """A team's own Kubernetes on its share of the nodes, scheduled in its mode.

    What runs in it depends on `ready`: until its queues are there, a pod would stay Pending (K16).
    """

    vcluster: VirtualCluster
    ready: list[pulumi.Resource]

    def __init__(
        self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Team", name, None, opts)
        team = args.team
        first = pulumi.ResourceOptions(parent=self, depends_on=opts.depends_on if opts else None)
        queues = [team.queue] if team.queue else []
        if team.scheduler.mode == "host":
            if team.queues:
                tree = QueueTreeArgs(
                    team.queues, args.host, parent=args.parent_queue, shard=args.parent_shard
                )
                queues = QueueTree(f"{name}-queues", tree, opts=first).leaves
            # The team's pods come as soon as its vCluster answers, so this comes before that.
            guard = self._guard(name, args, queues, first, f"team-{name}")
            first = pulumi.ResourceOptions.merge(first, pulumi.ResourceOptions(depends_on=guard))
        self.vcluster = VirtualCluster(
            name,
            VirtualClusterArgs(
                host=args.host,
                version=args.vcluster.version or DEFAULT_VCLUSTER,
                mode=team.scheduler.mode,
                node_pool=team.node_pool,
                access=args.vcluster.access or Access(),
                kubernetes_version=args.vcluster.kubernetes_version,
                chart=args.vcluster.chart,
                values=args.vcluster.values,
                licensed=args.vcluster.licensed,
                own_stack=args.own_stack,
                past=args.past,
            ),
            opts=first,
        )
        self.ready = [self.vcluster]
        # The scheduler inside sees every GPU of its nodes; this is the bound that holds (V1, V7).
        kubernetes.core.v1.ResourceQuota(
            f"{name}-gpus",
            metadata={"name": "gpus", "namespace": self.vcluster.namespace},
            spec={"hard": {f"requests.{args.gpu_resource}": str(team.gpus)}},
            # It goes with the namespace, never before it: nobody is to lift the bound by itself.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.vcluster.release],
                deleted_with=self.vcluster.release,
            ),
        )
        if team.scheduler.mode == "virtual" and team.scheduler.version:
            queues = self._virtual(name, args, team.scheduler.version)
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
            parent=self, provider=self.vcluster.provider, deleted_with=self.vcluster.release
        )
        # Before the scheduler: no pod is placed that it has not seen.
        guard = self._guard(name, args, leaves(args.team.queues), inside)
        kai = KaiScheduler(
            f"{name}-kai",
            KaiSchedulerArgs(
                version=version,
                access=self.vcluster.inside,
                gpu_sharing=args.gpu_sharing,
                chart=scheduler.chart,
                values=values_with(
                    scheduler, version, scheduler.values, untested=scheduler.untested
                ),
                untested=scheduler.untested,
                past=args.past,
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
        namespace: str | None = None,
    ) -> list[pulumi.Resource]:
        """The team's guard at admission, unless it is off."""
        mode = args.guard.mode
        if mode == "off":
            return []
        guard = QueueGuardArgs(name, queues, namespace, mode, args.gpu_sharing)
        return [QueueGuard(f"{name}-guard", guard, opts)]
