"""Rules about vClusters; those about the values of their charts have this in common."""

from collections.abc import Callable, Iterator, Mapping

from kai_fleet.fleet.model import DeclaredTeam
from kubectl_fleet.declared import plain
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.rules.problem import Problem, mandatory, undecided, vcluster_subject

Values = Mapping[str, object]
# From a vCluster and its values to dotted keys and what is wrong there; "" is not known yet.
Judge = Callable[[DeclaredTeam, Values], Iterator[tuple[str, str]]]


def judged(team: DeclaredTeam, judge: Judge) -> Iterator[Problem]:
    """The problems of one vCluster's values."""
    subject = vcluster_subject(team)
    if team.values is UNKNOWN:
        yield undecided(subject, team.written_at("vcluster", "values"), "its values are known")
        return
    for key, message in judge(team, team.values):
        path = team.written_at("vcluster", "values", key)
        if message:
            yield mandatory(subject, path, message)
        else:
            yield undecided(subject, path, f"{key} is known")


def value_of(values: Values, key: str) -> object:
    """The value at a dotted key: UNKNOWN if any step is, None if one is absent."""
    return plain.get(values, *key.split("."))
