"""The teams that an update is not about: what they have in the stack, for the engine to leave.

The removal of a team is about that team alone: the platform is left as it is, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pulumi import automation

from components.focus import TEAM, Focus
from components.past import STACK, Past
from components.team_stack_grant import granted_to, is_access
from fleet.past_at_hand import past_at_hand
from fleet.recovery import state
from fleet.recovery.state import State

_LEAD: Final = "only the platform and team "
_GOING: Final = "only the removal of team "


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
    found = state.at_hand(stack)
    return _knowing(found, of_resources(found.resources, teams)) if found.resources else None


def of_resources(resources: Iterable[Mapping[str, Any]], teams: Collection[str]) -> Neighbours:
    """The same, of a state's resources."""
    parents = parents_of(resources)
    excluded = (
        urn
        for urn, above in parents.items()
        if (granted_to(urn, above) or team_of(urn, parents)) not in ("", *teams)
    )
    return Neighbours(Focus(frozenset(teams), frozenset(parents)), tuple(excluded))


def beside_the_leaving(stack: automation.Stack, team: str) -> Neighbours:
    """What everybody but one team has, the platform too. Raises CommandError."""
    found = state.at_hand(stack)
    return _knowing(found, all_but(found.resources, team))


def _knowing(found: State, alone: Neighbours) -> Neighbours:
    """The same, for a program that need not ask for what was just read."""

    def past() -> Past | None:
        return past_at_hand(found.resources) if found.unchanged() else None

    return replace(alone, focus=replace(alone.focus, past=past))


def all_but(resources: Iterable[Mapping[str, Any]], team: str) -> Neighbours:
    """The same, of a state's resources. The stack itself has the outputs, which change."""
    parents = parents_of(resources)
    going = goes_with(team, parents)
    excluded = (urn for urn in parents if urn not in going and f"::{STACK}::" not in urn)
    return Neighbours(Focus(frozenset({team}), frozenset(parents)), tuple(excluded), _GOING)


def goes_with(team: str, parents: Mapping[str, str]) -> set[str]:
    """What leaves a stack with a team: all that it has, or what was granted to its own stack; with
    the last grant what all of them had.
    """
    going = {urn for urn in parents if team_of(urn, parents) == team}
    granted = {urn: to for urn, above in parents.items() if (to := granted_to(urn, above))}
    if set(granted.values()) == {team}:
        return going | {u for u, above in parents.items() if is_access(u) or is_access(above)}
    return going | {urn for urn, to in granted.items() if to == team}


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
