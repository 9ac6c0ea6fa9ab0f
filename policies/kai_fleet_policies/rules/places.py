"""Where a finding is, and what is wrong there: the things that rules look at, in words."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeAlias

from kai_fleet.finding import Finding, Level
from kai_fleet.values import UNKNOWN, at
from kai_fleet_policies.model.cluster import Cluster, Kai, Team
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue


@dataclass(frozen=True)
class Place:
    """What a rule looks at: its kind and its name in words, and its key or its URN."""

    kind: str
    name: str
    path: str

    def at(self, *keys: str) -> Self:
        """A key below it."""
        return replace(self, path=at(self.path, *keys))

    def refuse(self, cause: str, fix: str = "") -> Finding:
        """A mistake that stops the preview."""
        return Finding(Level.MANDATORY, self.path, self.kind, self.name, cause, fix)

    def warn(self, cause: str, fix: str = "") -> Finding:
        """A warning."""
        return Finding(Level.ADVISORY, self.path, self.kind, self.name, cause, fix)

    def undecided(self, until: str) -> Finding:
        """A question that the update answers; `until` completes "cannot decide until"."""
        fix = "the rule is checked again when it is known"
        return replace(self.warn(f"cannot decide until {until}", fix), undecided=True)


def called(name: str | None) -> str:
    """A name for a sentence, also where it is not known yet."""
    return "(name not known yet)" if name is UNKNOWN else name or "(no name)"


def of_cluster(kind: str, cluster: Cluster) -> Place:
    """For example `queues of ml`."""
    return Place(kind, f"of {cluster.name}", cluster.path)


def of_queue(queue: DeclaredQueue, cluster: Cluster, *keys: str) -> Place:
    """For example `queue train in ml`; `keys` are below where it stands."""
    return Place("queue", f"{called(queue.name)} in {cluster.name}", at(queue.path, *keys))


def of_workload(workload: PodTemplate, cluster: Cluster) -> Place:
    """For example `Deployment api in namespace team-a of ml`."""
    name = called(workload.name) + (f" ({workload.part})" if workload.part else "")
    namespace = called(workload.namespace or "default")
    return Place(workload.kind, f"{name} in namespace {namespace} of {cluster.name}", workload.path)


def of_team(team: Team, *keys: str) -> Place:
    """For example `team ml`; `keys` are below where it stands."""
    return Place("team", called(team.name), at(team.path, *keys))


def of_vcluster(team: Team, *keys: str) -> Place:
    """For example `vCluster ml`; `keys` are below its section, or that of all vClusters."""
    return Place("vCluster", called(team.name), team.written_at("vcluster", *keys))


def of_kai(kai: Kai, cluster: Cluster, *keys: str) -> Place:
    """For example `KAI of ml`; `keys` are below where it stands."""
    return Place("KAI", f"of {cluster.name}", at(kai.path, *keys))


# What a rule is asked about one by one, with the place of each.
Each: TypeAlias = Callable[[Cluster], Iterable[tuple[Any, Place]]]


def _each(field: str, place: Callable[[Any, Cluster], Place]) -> Each:
    return lambda cluster: ((item, place(item, cluster)) for item in getattr(cluster, field))


QUEUES: Final = _each("queues", of_queue)
WORKLOADS: Final = _each("workloads", of_workload)
TEAMS: Final = _each("teams", lambda team, _: of_team(team))
VCLUSTERS: Final = _each("teams", lambda team, _: of_vcluster(team))


def kais(cluster: Cluster) -> Iterable[tuple[Kai, Place]]:
    """Each KAI, but that of a platform in a team's own stack: it is judged there."""
    return ((kai, of_kai(kai, cluster)) for kai in cluster.kai if not cluster.platform)


def claims(cluster: Cluster) -> Iterable[tuple[Team, Place]]:
    """The teams of a host, and those that it grants a stack of their own."""
    return ((team, of_team(team)) for team in (*cluster.teams, *cluster.grants))
