"""What a rule is: a function over a cluster, with its name, its level and its reason."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self, TypeAlias, TypeVar

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.cluster import Cluster, Kai, Team
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.values import UNKNOWN, at

T = TypeVar("T")
Findings: TypeAlias = Iterator[Finding]


class Severity(StrEnum):
    """What is at stake: `critical` is other teams' running work, `high` is that pods do not run."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class UnknownValueError(Exception):
    """A rule needs a value that only the update knows; the text completes "cannot decide until"."""


def known(value: T, until: str) -> T:
    """The value. Raises UnknownValueError where only the update knows it.

    `until` completes "cannot decide until": `its parent is known`.
    """
    if value is UNKNOWN:
        raise UnknownValueError(until)
    return value


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
    if name is UNKNOWN:
        return "(name not known yet)"
    return name or "(no name)"


def of_cluster(kind: str, cluster: Cluster) -> Place:
    """For example `queues of ml`."""
    return Place(kind, f"of {cluster.name}", cluster.path)


def of_queue(queue: DeclaredQueue, cluster: Cluster, *keys: str) -> Place:
    """For example `queue train in ml`; `keys` are below where it stands."""
    return Place("queue", f"{called(queue.name)} in {cluster.name}", at(queue.path, *keys))


def of_workload(workload: PodTemplate, cluster: Cluster) -> Place:
    """For example `Deployment api in namespace team-a of ml`."""
    name = called(workload.name) + (f" ({workload.part})" if workload.part else "")
    namespace = called(workload.namespace) if workload.namespace else "default"
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


def queues(cluster: Cluster) -> Iterable[tuple[DeclaredQueue, Place]]:
    """Each queue."""
    return ((queue, of_queue(queue, cluster)) for queue in cluster.queues)


def workloads(cluster: Cluster) -> Iterable[tuple[PodTemplate, Place]]:
    """Each pod template."""
    return ((workload, of_workload(workload, cluster)) for workload in cluster.workloads)


def vclusters(cluster: Cluster) -> Iterable[tuple[Team, Place]]:
    """Each team that has a vCluster."""
    return ((team, of_vcluster(team)) for team in cluster.teams)


def teams(cluster: Cluster) -> Iterable[tuple[Team, Place]]:
    """Each team."""
    return ((team, of_team(team)) for team in cluster.teams)


def kais(cluster: Cluster) -> Iterable[tuple[Kai, Place]]:
    """Each KAI, but that of a platform in a team's own stack: it is judged there."""
    kai = () if cluster.platform else cluster.kai
    return ((each, of_kai(each, cluster)) for each in kai)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        name: As users see it: `queue-tree`.
        about: What it demands, in one line.
        check: Finds what is wrong in one cluster.
    """

    name: str
    level: Level
    severity: Severity
    about: str
    why: str
    remedy: str
    check: Callable[[Cluster], Findings]

    def findings(self, cluster: Cluster) -> Findings:
        """What it finds in one cluster, with its name."""
        return (replace(finding, check=self.name) for finding in self.check(cluster))


def rule(
    name: str, level: Level, severity: Severity, each: Each | None = None
) -> Callable[[Callable[..., Findings]], Rule]:
    """Make a rule of a function; its docstring is what it demands, why, and the remedy.

    The function gets the cluster; with `each` also an item and the item's place, for each of them.
    Where it needs a value that is not known, that is one undecided finding for the item.
    """

    def register(function: Callable[..., Findings]) -> Rule:
        def check(cluster: Cluster) -> Findings:
            items = each(cluster) if each is not None else [(None, of_cluster("rule", cluster))]
            for item, place in items:
                more = () if each is None else (item, place)
                try:
                    yield from function(cluster, *more)
                except UnknownValueError as unknown:
                    yield place.undecided(str(unknown))

        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        about, why, remedy = (" ".join(each.split()) for each in paragraphs)
        return Rule(name, level, severity, about, why, remedy.removeprefix("Remedy: "), check)

    return register
