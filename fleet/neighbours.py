"""The teams that an update is not about: what they have in the stack, for the engine to leave.

The removal of a team is about that team alone: the platform is left as it is, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from components.focus import TEAM, Focus
from components.past import STACK
from fleet.recovery import state

_LEAD: Final = "only the platform and team "
_GOING: Final = "only the removal of team "
# What the platform would get that it has not yet: a removal makes nothing.
_PLATFORM: Final = "**::kai-fleet:index:Platform$**"


@dataclass(frozen=True)
class Neighbours:
    """What of a stack an update excludes, by URN; the program's part of it; and what the message
    that the stack's history keeps begins with.
    """

    focus: Focus
    excluded: tuple[str, ...]
    lead: str = _LEAD

    @property
    def message(self) -> str:
        """Which teams the update was about."""
        return self.lead + ", ".join(sorted(self.focus.teams))


def left_alone(stack: automation.Stack, teams: Collection[str]) -> Neighbours | None:
    """What all teams but these have; None where the stack has nothing yet. Raises CommandError."""
    resources = state.at_hand(stack).resources
    return of_resources(resources, teams) if resources else None


def of_resources(resources: Iterable[Mapping[str, Any]], teams: Collection[str]) -> Neighbours:
    """The same, of a state's resources."""
    parents = parents_of(resources)
    excluded = (urn for urn in parents if team_of(urn, parents) not in ("", *teams))
    return Neighbours(Focus(frozenset(teams), frozenset(parents)), tuple(excluded))


def beside_the_leaving(stack: automation.Stack, team: str) -> Neighbours:
    """What everybody but one team has, the platform too. Raises CommandError."""
    return all_but(state.at_hand(stack).resources, team)


def all_but(resources: Iterable[Mapping[str, Any]], team: str) -> Neighbours:
    """The same, of a state's resources. The stack itself has the outputs, which change."""
    parents = parents_of(resources)
    excluded = [
        urn for urn in parents if team_of(urn, parents) != team and f"::{STACK}::" not in urn
    ]
    focus = Focus(frozenset({team}), frozenset(parents))
    return Neighbours(focus, (*excluded, _PLATFORM), _GOING)


def was_about(message: str, team: str) -> bool:
    """Whether an update with this message in the history was about a team."""
    for lead in (_LEAD, _GOING):
        if message.startswith(lead):
            return team in message.removeprefix(lead).split(", ")
    return True


def parents_of(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The parent of each resource by URN; "" where it has none."""
    return {str(it["urn"]): str(it.get("parent", "")) for it in resources}


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource is below, or is; "" for the platform's."""
    while urn:
        kinds, name = urn.split("::", 3)[2:]
        if kinds.rpartition("$")[2] == TEAM:
            return name
        urn = parents.get(urn, "")
    return ""
