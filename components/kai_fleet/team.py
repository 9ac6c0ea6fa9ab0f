"""A team: its vCluster, its share of the GPUs, its scheduler and its queues; and all of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.deployed_state import DeclaredRun, DeployedState
from kai_fleet.fleet.model import DeclaredKai, DeclaredTeam
from kai_fleet.guards.components import QueueGuard, QueueGuardArgs
from kai_fleet.host.platform import Platform
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.isolation.team_places import team_namespaces
from kai_fleet.kai.kai_scheduler import KaiScheduler, KaiSchedulerArgs
from kai_fleet.kai.scheduling import QueueTree, QueueTreeArgs, declare_scheduling
from kai_fleet.options import after, noted
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs


@dataclass
class TeamArgs:
    """`team` is one of a fleet's, and `host` the cluster that it is on.

    Its namespace is team-NAME, which is there; or `namespace`, which is there too; or the one that
    is made as `place` says, and goes with the team.
    """

    team: DeclaredTeam
    host: ClusterAccess
    deployed: DeployedState = field(default_factory=DeployedState)
    namespace: pulumi.Input[str] | None = None
    place: TeamNamespaceArgs | None = None


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
        team = args.team
        super().__init__(
            "kai-fleet:index:Team", name, None, noted(opts, team.labels, team.annotations)
        )
        opts = opts or pulumi.ResourceOptions()
        first = pulumi.ResourceOptions(
            parent=self, depends_on=opts.depends_on, deleted_with=opts.deleted_with
        )
        if args.place is not None:
            first.depends_on = TeamNamespace(name, args.place, first).ready
        queues = [team.queue] if team.queue else []
        if team.host_queues:
            tree = QueueTreeArgs(team.host_queues, args.host, parent=team.parent_queue)
            queues = QueueTree(f"{name}-queues", tree, opts=first).leaves
        self.vcluster = VirtualCluster(
            name,
            VirtualClusterArgs(args.host, team, namespace=args.namespace, deployed=args.deployed),
            opts=first,
        )
        self.ready = [self.vcluster]
        for kai in team.kai:
            queues = self._virtual(name, args, kai)
        self.queues = queues
        self.summary = {
            "mode": team.mode,
            "scheduler": team.kai[0].version if team.kai else None,
            "namespace": self.vcluster.namespace,
            "server": self.vcluster.server,
            "gpus": team.gpus,
            "queues": queues,
        }
        self.register_outputs({"namespace": self.vcluster.namespace})

    def _virtual(self, name: str, args: TeamArgs, own: DeclaredKai) -> list[str]:
        """KAI of the team's own version and its queues, inside the vCluster."""
        team, access, inside = args.team, self.vcluster.inside, self.vcluster.within(self)
        before_kai = inside
        if team.inside_guard:  # no pod is placed that it has not seen
            guard = QueueGuard(f"{name}-guard", QueueGuardArgs(team.inside_guard), inside)
            before_kai = after(inside, guard)
        isolation = team.isolation or Isolation()
        own_kai = KaiSchedulerArgs(own, access, isolation=isolation, deployed=args.deployed)
        kai = KaiScheduler(f"{name}-kai", own_kai, before_kai)
        declare_scheduling(name, kai, inside)
        tree = QueueTree(
            f"{name}-queues", QueueTreeArgs(team.inside.queues, access), after(inside, kai.ready)
        )
        self.ready.append(tree)
        return tree.leaves


def teams_of(
    platform: Platform,
    run: DeclaredRun,
    providers: Sequence[pulumi.ProviderResource] = (),
    parent: pulumi.Resource | None = None,
) -> dict[str, Team]:
    """Declare the teams of a run, below `parent` or the stack itself.

    Each has a namespace on the host with what bounds it there, and teams with a stack of their own
    have accounts. A team stack has neither: they are its platform's.
    """
    namespaces = team_namespaces(platform, run, parent)
    of = platform.args
    return {
        name: Team(
            name,
            TeamArgs(of.fleet.teams[name], platform.access, of.deployed),
            opts=pulumi.ResourceOptions(
                parent=parent,
                providers=[platform.provider, *providers],
                depends_on=namespaces[name].ready if name in namespaces else platform.ready,
                transformations=platform.transformations,
            ),
        )
        for name in run.teams
    }
