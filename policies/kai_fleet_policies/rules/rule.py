"""What a rule is, and what its findings are about.

A rule is a function over one cluster, with a name, a level, a demand and the reason for it. A
subject is one thing that a rule judges: in words, and by its key in the stack file or its URN.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Self, TypeVar

from kai_fleet.values import UNKNOWN, Maybe, at
from kai_fleet_policies.finding import Command, Finding, Fix, Level, commands_of, sentence
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.model.queues import DeclaredQueue

T = TypeVar("T")
Findings = Iterator[Finding]
# What is at stake: `critical` is other teams' running work, `high` is that pods do not run.
Severity = Literal["low", "medium", "high", "critical"]


class UnknownValueError(Exception):
    """A rule needs a value that only the update knows; the text completes "cannot decide until"."""


def require_known(value: Maybe[T], until: str) -> T:
    """Return the value.

    `until` completes "cannot decide until", for example `its parent is known`.

    Raises:
        UnknownValueError: The value is UNKNOWN. The rule then reports one undecided finding.
    """
    if value is UNKNOWN:
        raise UnknownValueError(until)
    return value


@dataclass(frozen=True)
class Subject:
    """What a finding is about: `kind` and `name` in words, and `path`, its key or its URN.

    `key_path_of` finds a key that need not be written below `path`, such as one for all teams.
    """

    kind: str
    name: str
    path: str
    key_path_of: Callable[..., str] | None = field(default=None, compare=False)

    def at(self, *keys: str) -> Self:
        """The same subject with the path of a key below it; a URN and "" stay as they are.

        `key_path_of` is asked once: a further call goes below the path that it found.
        """
        if self.key_path_of is None:
            return replace(self, path=at(self.path, *keys))
        return replace(self, path=self.key_path_of(*keys), key_path_of=None)

    def refuse(self, cause: str, *fix: str | Command) -> Finding:
        """A mistake that stops the preview; its `check` is "" until the rule adds its name.

        `cause` is a predicate of the subject. The fix is an imperative, given in parts; none if
        nothing helps, or if the cause says it.
        """
        return self._finding(Level.MANDATORY, cause, fix)

    def warn(self, cause: str, *fix: str | Command) -> Finding:
        """A warning, which stops nothing, with cause and fix as `refuse` takes them."""
        return self._finding(Level.ADVISORY, cause, fix)

    def undecided(self, until: str) -> Finding:
        """A warning that the rule cannot decide; `until` completes "cannot decide until".

        Most wait for a value that only the update knows. Others wait for what this program does not
        declare, such as its queues, or for the configuration of the policy pack.
        """
        finding = self.warn(
            f"cannot decide until {until}",
            "the rule is checked again when it is known",
        )
        return replace(finding, undecided=True)

    def _finding(self, level: Level, cause: str, fix: Fix) -> Finding:
        return Finding(
            level,
            path=self.path,
            kind=self.kind,
            name=self.name,
            cause=cause,
            fix=sentence(fix),
            commands=commands_of(fix),
        )


# Finds what is wrong in a cluster.
Check = Callable[[ClusterModel], Findings]
# What a rule judges in a cluster, each value with its subject, and what lists it.
Judged = Iterator[tuple[T, Subject]]
Subjects = Callable[[ClusterModel], Judged[T]]
# Judges one of these values. A docstring is required: it becomes the rule's demand and reason.
Judge = Callable[[ClusterModel, T, Subject], Findings]


@dataclass(frozen=True)
class Rule:
    """One rule: its name as users see it, what it demands in one line and why, and `check`, which
    yields what is wrong in one cluster. `level` is the policy's: a finding has a level of its own.
    """

    name: str
    level: Level
    severity: Severity
    demand: str
    reason: str
    check: Check


def mandatory(
    name: str,
    severity: Severity,
    subjects: Subjects[T],
    level: Level = Level.MANDATORY,
) -> Callable[[Judge[T]], Rule]:
    """Decorate a function as a rule that stops the preview, asked about each of `subjects`.

    The function's name then is that of the Rule, which cannot be called. The first paragraph of its
    docstring is the rule's demand, the second the reason. Where it needs a value that is not known,
    what it yielded before stays, an undecided finding follows, and the next subject is judged.

    Args:
        name: The rule's name, and that of its policy.
        severity: What is at stake.
        subjects: Lists what the function is asked about; the function is not asked without any.
        level: The policy's level. It does not change a finding's, which is that of `Subject.refuse`
            or `Subject.warn`.

    Raises:
        ValueError: As soon as it decorates: the docstring does not have exactly these two
            paragraphs.
    """

    def decorate(judge: Judge[T]) -> Rule:
        def check(cluster: ClusterModel) -> Findings:
            for value, subject in subjects(cluster):
                yield from _in_name_of(name, judge(cluster, value, subject), subject)

        paragraphs = inspect.cleandoc(judge.__doc__ or "").split("\n\n")
        demand, reason = [" ".join(paragraph.split()) for paragraph in paragraphs]
        return Rule(name, level, severity, demand, reason, check)

    return decorate


def advisory(name: str, severity: Severity, subjects: Subjects[T]) -> Callable[[Judge[T]], Rule]:
    """Decorate a function as a rule whose policy warns; see `mandatory`.

    What it finds with `Subject.refuse` is a mandatory finding all the same.
    """
    return mandatory(name, severity, subjects, Level.ADVISORY)


def _in_name_of(rule: str, findings: Findings, subject: Subject) -> Findings:
    """The findings with the rule's name; a value that is not known ends them as undecided.

    The undecided finding is about `subject`, whatever the rule was looking at.
    """
    try:
        for finding in findings:
            yield replace(finding, check=rule)
    except UnknownValueError as unknown:
        yield replace(subject.undecided(str(unknown)), check=rule)


def name_in_words(name: Maybe[str] | None) -> str:
    """A name for a sentence; a remark in parentheses for UNKNOWN, and for None and ""."""
    if name is UNKNOWN:
        return "(name not known yet)"
    return name or "(no name)"


def cluster_subject(kind: str, cluster: ClusterModel) -> Subject:
    """For example `queues of ml`."""
    return Subject(kind, f"of {cluster.name}", cluster.path)


def queue_subject(queue: DeclaredQueue, cluster: ClusterModel) -> Subject:
    """For example `queue train in ml`."""
    return Subject("queue", f"{name_in_words(queue.name)} in {cluster.name}", queue.path)


def team_subject(team: TeamModel) -> Subject:
    """For example `team ml`."""
    return Subject("team", name_in_words(team.name), team.path)


def kai_subject(kai: Kai, cluster: ClusterModel) -> Subject:
    """For example `KAI of ml`."""
    return Subject("KAI", f"of {cluster.name}", kai.path, kai.find_key)


def each_queue(cluster: ClusterModel) -> Judged[DeclaredQueue]:
    """The queues of the cluster, also those of a chart or another stack that are known here."""
    for queue in cluster.queues:
        yield queue, queue_subject(queue, cluster)


def each_workload(cluster: ClusterModel) -> Judged[PodTemplate]:
    """The pods and pod templates of the cluster: `Deployment api in namespace team-a of ml`.

    A template with a `part` is `api (part)`. The namespace None or "" is `default`.
    """
    for workload in cluster.workloads:
        name = name_in_words(workload.name)
        if workload.part:
            name += f" ({workload.part})"
        namespace = name_in_words(workload.namespace or "default")
        words = f"{name} in namespace {namespace} of {cluster.name}"
        yield workload, Subject(workload.kind, words, workload.path)


def each_vcluster(cluster: ClusterModel) -> Judged[TeamModel]:
    """The vClusters of a host's teams; their keys are in the team's section or in that for all.

    None of teams with a stack of their own, unless this is that stack.
    """
    for team in cluster.teams:
        key_path_of = partial(team.key_path_of, "vcluster")
        yield team, Subject("vCluster", name_in_words(team.name), key_path_of(), key_path_of)


def each_claim(cluster: ClusterModel) -> Judged[TeamModel]:
    """The teams of a host, and then those to which it grants a stack of their own."""
    for claim in cluster.claims:
        yield claim, team_subject(claim)


def each_kai(cluster: ClusterModel) -> Judged[Kai]:
    """The KAI of the cluster. None of the host in a team's own stack: the platform's judges that.

    The KAI in that team's vCluster is another cluster's: it is given.
    """
    if cluster.platform_stack:
        return
    for kai in cluster.kai:
        yield kai, kai_subject(kai, cluster)
