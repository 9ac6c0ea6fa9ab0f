"""What a rule is: a function over what a cluster has, with its name, its level and its reason; and
the places of what it finds.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

from kai_fleet.finding import Finding, Level
from kai_fleet.releases import table
from kai_fleet.values import UNKNOWN, at
from kai_fleet_policies.model.cluster import Cluster, Kai, Team
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue

T = TypeVar("T")
Findings: TypeAlias = Iterator[Finding]
# What is at stake: `critical` is other teams' running work, `high` is that pods do not run.
Severity: TypeAlias = Literal["low", "medium", "high", "critical"]


class UnknownValueError(Exception):
    """A rule needs a value that only the update knows; the text completes "cannot decide until"."""


def known(value: T, until: str) -> T:
    """The value. Raises UnknownValueError where only the update knows it.

    `until` completes "cannot decide until": `its parent is known`.
    """
    if value is UNKNOWN:
        raise UnknownValueError(until)
    return value


def row(name: str, /, **values: object) -> tuple[str, str]:
    """Cause and fix of a row of `causes.yaml`, with these values in its placeholders."""
    texts = table("causes", __package__)[name]
    return texts["cause"].format_map(values), texts.get("fix", "").format_map(values)


@dataclass(frozen=True)
class Place:
    """What a rule looks at: its kind and its name in words, and its key or its URN. `find` has
    where a key of it is written, if not below its path.
    """

    kind: str
    name: str
    path: str
    find: Callable[..., str] | None = field(default=None, compare=False)

    def at(self, *keys: str) -> Self:
        """A key below it."""
        path = self.find(*keys) if self.find else at(self.path, *keys)
        return replace(self, path=path, find=None)

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


# What a rule is asked about one by one, with the place of each.
Each: TypeAlias = Callable[[Cluster], Iterable[tuple[Any, Place]]]


@dataclass(frozen=True)
class Rule:
    """One rule: its name as users see it, what it demands in one line and why, and `check`, which
    finds what is wrong in one cluster.
    """

    name: str
    level: Level
    severity: Severity
    about: str
    why: str
    check: Callable[[Cluster], Findings]


def _rule(
    level: Level, name: str, severity: Severity, each: Each | None = None
) -> Callable[[Callable[..., Findings]], Rule]:
    """Make a rule of a function; its docstring is what it demands, and why.

    The function gets the cluster; with `each` also an item and the item's place, for each of them.
    Where it needs a value that is not known, that is one undecided finding for the item.
    """

    def register(function: Callable[..., Findings]) -> Rule:
        def check(cluster: Cluster) -> Findings:
            asked: Iterable[tuple[Any, ...]] = [()] if each is None else each(cluster)
            for more in asked:
                try:
                    for finding in function(cluster, *more):
                        yield replace(finding, check=name)
                except UnknownValueError as unknown:
                    place = more[-1] if more else of_cluster("rule", cluster)
                    yield replace(place.undecided(str(unknown)), check=name)

        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        about, why = (" ".join(paragraph.split()) for paragraph in paragraphs)
        return Rule(name, level, severity, about, why, check)

    return register


mandatory: Final = partial(_rule, Level.MANDATORY)
advisory: Final = partial(_rule, Level.ADVISORY)


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


def _of_vcluster(team: Team, cluster: Cluster) -> Place:
    """For example `vCluster ml`; its keys are below its section, or that of all vClusters."""
    find = partial(team.written_at, "vcluster")
    return Place("vCluster", called(team.name), find(), find)


def of_kai(kai: Kai, cluster: Cluster, *keys: str) -> Place:
    """For example `KAI of ml`; `keys` are below where it stands."""
    place = Place("KAI", f"of {cluster.name}", kai.path, kai.where)
    return place.at(*keys) if keys else place


def _each(field: str, place: Callable[[Any, Cluster], Place]) -> Each:
    return lambda cluster: [(item, place(item, cluster)) for item in getattr(cluster, field)]


each_queue: Final = _each("queues", of_queue)
each_workload: Final = _each("workloads", of_workload)
each_vcluster: Final = _each("teams", _of_vcluster)


def each_claim(cluster: Cluster) -> Iterable[tuple[Team, Place]]:
    """The teams of a host, and those that it grants a stack of their own."""
    return ((team, of_team(team)) for team in (*cluster.teams, *cluster.grants))


def each_kai(cluster: Cluster) -> Iterable[tuple[Kai, Place]]:
    """Each KAI, but that of a platform in a team's own stack: it is judged there."""
    return ((kai, of_kai(kai, cluster)) for kai in cluster.kai if not cluster.platform)
