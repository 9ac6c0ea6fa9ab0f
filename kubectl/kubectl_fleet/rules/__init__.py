"""What is wrong with pods and queues in themselves; the policy pack has these rules, too."""

from dataclasses import replace
from typing import Protocol, TypeVar

from kubectl_fleet.rules.problem import Level, Problems, Severity

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
