"""Rules about vClusters; those about the values of their charts have this in common."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.quantities import parse_quantity
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import ProblemPlace, Problems, called

# What a store or a volume takes that cannot be changed.
ANOTHER: Final = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
Values = Mapping[str, object]
# From a vCluster and its values to dotted keys and what is wrong there; "" is not known yet.
Judge = Callable[[DeclaredTeam, Values], Iterator[tuple[str, str]]]


def judged(team: DeclaredTeam, judge: Judge) -> Problems:
    """The problems of one vCluster's values."""
    if team.values is UNKNOWN:
        yield of_vcluster(team, "values").undecided("its values are known")
        return
    for key, message in judge(team, team.values):
        place = of_vcluster(team, "values", key)
        if message:
            yield place.mandatory(message)
        else:
            yield place.undecided(f"{key} is known")


def of_vcluster(team: DeclaredTeam, *keys: str) -> ProblemPlace:
    """For example `vCluster ml`; `keys` are below its section, or that of all vClusters."""
    return ProblemPlace(f"vCluster {called(team.name)}", team.written_at("vcluster", *keys))


def amount(quantity: object) -> Decimal | None:
    """The number of a quantity; None for what is none: the chart says what is wrong with it."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return None
