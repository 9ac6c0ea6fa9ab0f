"""What was read of each API server of a stack, and the questions that several checks have of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kai_fleet.cluster.tenant_kubeconfig import mending_commands, name_writer
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.guards.host_rules import CONTROL_PLANES
from kai_fleet.releases.helm_record import Forged
from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.waiting.read_cluster import OF_ITS_STACK as OF_ITS_STACK
from kubectl_fleet.waiting.read_cluster import ClusterPods, ReadCluster
from kubectl_fleet.waiting.read_cluster import Findings as Findings


@dataclass(frozen=True)
class ClusterState(ReadCluster):
    """The same with all that the stack declares in it."""

    wanted: DeclaredCluster = field(default_factory=DeclaredCluster)

    def refused(self, *kinds: str) -> str:
        """Why these kinds, or pods, were not counted; "" where they were."""
        refused = [kind for kind in kinds or ("pods",) if kind in self.unreadable]
        why = self.unreadable[refused[0]] if refused else ""
        return f"this user may not list {' and '.join(refused)} there ({why})" if refused else ""

    def said_of(self, item: KubeObject) -> list[str]:
        """The messages about an object: the last events first, then what a pod says of itself."""
        events = [str(it.get("message") or "") for it in reversed(self.events_of(item))]
        return [*events, item.unscheduled, *item.waiting]

    def control_plane(self, team: DeclaredTeam) -> KubeObject | None:
        """What runs a team's vCluster: a StatefulSet, or a Deployment where it has no volume."""
        kinds = ("statefulsets", "deployments")
        return next(filter(None, (self.named(k, team.name, team.namespace) for k in kinds)), None)

    def vcluster_version(self, team: DeclaredTeam) -> str | None:
        """The version of vCluster that runs for a team, by the label of its chart."""
        item = self.control_plane(team)
        chart = item.labels.get("chart", "").removeprefix("vcluster-") if item else ""
        return f"v{chart}" if chart else None

    def control_plane_pods(self, team: DeclaredTeam) -> Iterator[KubeObject]:
        """The pods of a team's vCluster itself, not those that run in it."""
        for pod in self.within("pods", team.namespace):
            if pod.labels.get("app") in CONTROL_PLANES and pod.labels.get("release") == team.name:
                yield pod


@dataclass(frozen=True)
class TeamState:
    """A team's vCluster from outside, and its inside where its API answered.

    `unreached` says why it did not; `foreign`: because somebody else than the vCluster wrote its
    Secret. `certificate_ends` is the end of the client certificate.
    `provider_unreached`: its API server has no answer from the team's identity provider.
    `update` is what makes the stack that has it as declared. `records` are Helm's
    of the vCluster's release that its chart did not make; None where they were not looked at.
    `pull_secrets` are the types of its Secrets for images that could be read, "" of one that is
    not there.
    """

    wanted: DeclaredTeam
    inside: ClusterState | None = None
    unreached: str = ""
    certificate_ends: datetime | None = None
    update: str = OF_ITS_STACK
    foreign: bool = False
    provider_unreached: bool = False
    records: Sequence[Forged] | None = None
    pull_secrets: Mapping[str, str] = field(default_factory=dict)

    def mending(self, host: ClusterState) -> tuple[str, ...]:
        """The commands after which the vCluster has written its kubeconfig again."""
        team = self.wanted
        return mending_commands(team.name, team.namespace, host.kubectl, team.store.workload)


@dataclass(frozen=True)
class Snapshot:
    """Everything that one run of the doctor read."""

    host: ClusterState
    teams: Mapping[str, TeamState] = field(default_factory=dict)

    @property
    def foreign(self) -> list[str]:
        """Of each team whose kubeconfig is not its vCluster's: what is there, and what mends it."""
        return [
            f"team {name}: {team.unreached}. {name_writer(name)}. Have it written again:"
            f" {' and '.join(team.mending(self.host))}"
            for name, team in self.teams.items()
            if team.foreign
        ]

    @property
    def clusters(self) -> list[ClusterState]:
        """Every API server that answered, the host first."""
        return [self.host, *(team.inside for team in self.teams.values() if team.inside)]

    @property
    def with_kai(self) -> list[ClusterState]:
        """Those of them that run a KAI, or are to."""
        return [cluster for cluster in self.clusters if cluster.kai is not None]

    def copied(self, cluster: ClusterState) -> frozenset[str]:
        """The namespaces of the host whose pods are looked at inside the vClusters they are of."""
        if cluster is not self.host:
            return frozenset()
        return frozenset(t.wanted.namespace for t in self.teams.values() if t.inside is not None)

    def wanted_of(self, cluster: ClusterState) -> DeclaredTeam | None:
        """The team whose vCluster this is; None for the host."""
        team = self.teams.get(cluster.name)
        return team.wanted if team is not None else None

    @property
    def pods_of_each(self) -> Iterator[ClusterPods]:
        """The users' pods of each cluster, with what decides about them; each in one only."""
        for cluster in self.clusters:
            copied, team = self.copied(cluster), self.wanted_of(cluster)
            own = [pod for pod in cluster.user_pods if pod.namespace not in copied]
            yield ClusterPods(cluster, own, self.scheduling(cluster), self.host, team)

    def scheduling(self, cluster: ClusterState) -> ClusterState:
        """The cluster whose KAI places the pods of this one: the host's in host mode."""
        team = self.wanted_of(cluster)
        if team is None or cluster is self.host:
            return cluster
        if team.declared:
            return self.host if team.mode == "host" else cluster
        return self.host if cluster.kai is None and self.host.kai is not None else cluster
