"""What a rule is, and what it reports: one sentence for one place."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, Self, TypeAlias, TypeVar

from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.values import UNKNOWN, at
from kai_fleet.wording import agreeing, listed, on_one_line, plural


class Level(StrEnum):
    """`mandatory` stops a preview and an update; `advisory` is only shown."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"


class Severity(StrEnum):
    """What is at stake: `critical` is other teams' running work, `high` is that pods do not run."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake.

    `subject` names the thing in words (`queue train in ml`), `path` is the key in the stack file or
    the URN of the resource, and `message` says what is wrong and what to write instead.
    `undecided` marks an advisory that only says that a value is not known yet. `together` are the
    subjects of one that is told once for several.
    """

    rule: str
    level: Level
    subject: str
    path: str
    message: str
    undecided: bool = field(default=False, compare=False)
    together: tuple[str, ...] = field(default=(), compare=False)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Everything that it is about."""
        return self.together or (self.subject,)

    def record(self) -> dict[str, str]:
        """The five fields that the plan's JSON shows."""
        fields = ("rule", "level", "subject", "path", "message")
        return {name: str(getattr(self, name)) for name in fields}

    def __str__(self) -> str:
        """One line for a terminal or a log."""
        return f"{self.path or self.subject}: {self.subject}: {self.message} [{self.rule}]"


Problems: TypeAlias = Iterator[Problem]
C = TypeVar("C", contravariant=True)


class Rule(Protocol[C]):
    """A module that is a rule: what it forbids, why, what to write instead, and the check.

    `C` is what it looks at: a cluster as a team sees it too, or as it is declared.
    """

    __name__: str
    LEVEL: Level
    SEVERITY: Severity
    WHY: str
    REMEDY: str

    def check(self, cluster: C, /) -> Problems:
        """Every problem of one cluster, without the rule's name.

        Relations between a host's teams are the host's.
        """


def name_of(rule: Rule[C]) -> str:
    """A rule is called after its file: `queue-tree`."""
    return rule.__name__.rpartition(".")[2].replace("_", "-")


def problems_of(rule: Rule[C], cluster: C) -> Problems:
    """The problems of one rule in one cluster, with the rule's name, as the rule finds them."""
    return (replace(problem, rule=name_of(rule)) for problem in rule.check(cluster))


def mandatory(subject: str, path: str, message: str, rule: str = "") -> Problem:
    """A mistake that stops the preview; of a rule's own, `rules` writes the name of the rule."""
    return Problem(rule, Level.MANDATORY, subject, path, on_one_line(message))


@dataclass(frozen=True)
class ProblemPlace:
    """What a rule looks at, in words (`queue train in ml`), and its key or its URN."""

    subject: str
    path: str

    def at(self, *keys: str) -> Self:
        """A key below it."""
        return replace(self, path=at(self.path, *keys))

    def mandatory(self, message: str) -> Problem:
        """A mistake that stops the preview."""
        return mandatory(self.subject, self.path, message)

    def advisory(self, message: str) -> Problem:
        """A warning."""
        return Problem("", Level.ADVISORY, self.subject, self.path, on_one_line(message))

    def undecided(self, until: str) -> Problem:
        """The rule needs a value that only the update will know; it decides then.

        `until` completes "cannot decide until …".
        """
        message = f"cannot decide until {until}; the rule is checked again when it is known"
        return Problem("", Level.ADVISORY, self.subject, self.path, message, undecided=True)


def told_once(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with those that differ only in their subjects as one: what a stack file says
    once for all teams is wrong once. `vCluster ml`, `vCluster nlp` become `vClusters ml and nlp`,
    and the verb that the message begins with agrees.
    """
    same: dict[Problem, list[Problem]] = {}
    for problem in problems:
        same.setdefault(replace(problem, subject=""), []).append(problem)
    return [_together(each) for each in same.values()]


def _together(problems: list[Problem]) -> Problem:
    subjects = tuple(dict.fromkeys(problem.subject for problem in problems))
    if len(subjects) == 1:
        return problems[0]
    kind = subjects[0].partition(" ")[0]
    names = listed([subject.removeprefix(f"{kind} ") for subject in subjects], "and")
    number, (verb, _, rest) = len(subjects), problems[0].message.partition(" ")
    subject = f"{plural(number, kind)} {names}"
    message = f"{agreeing(number, verb)} {rest}"
    return replace(problems[0], subject=subject, message=message, together=subjects)


def called(name: str | None) -> str:
    """A name for a sentence, also where it is not known yet."""
    if name is UNKNOWN:
        return "(name not known yet)"
    return name or "(no name)"


def of_workload(workload: PodTemplate, cluster: Cluster) -> ProblemPlace:
    """For example `Deployment api in namespace team-a of ml`."""
    name = called(workload.name) + (f" ({workload.part})" if workload.part else "")
    namespace = called(workload.namespace) if workload.namespace else "default"
    subject = f"{workload.kind} {name} in namespace {namespace} of {cluster.name}"
    return ProblemPlace(subject, workload.path)


def of_queue(queue: DeclaredQueue, cluster: Cluster, *keys: str) -> ProblemPlace:
    """For example `queue train in ml`; `keys` are below where it stands."""
    return ProblemPlace(f"queue {called(queue.name)} in {cluster.name}", at(queue.path, *keys))


def of_team(team: Team, *keys: str) -> ProblemPlace:
    """For example `team ml`; `keys` are below where it stands."""
    return ProblemPlace(f"team {called(team.name)}", at(team.path, *keys))
