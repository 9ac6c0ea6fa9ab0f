"""What a rule is: a function over a cluster, with its name, its level and its reason."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from kai_fleet.finding import Finding, Level
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.rules.places import Each, of_cluster

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
