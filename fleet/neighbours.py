"""The teams that an update is not about: what they have in the stack, for the engine to leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from components.focus import TEAM, Focus
from fleet.recovery import state

_LEAD: Final = "only the platform and team "


@dataclass(frozen=True)
class Neighbours:
    """What of a stack an update excludes, by URN; the program's part of it; and the message that
    the stack's history keeps.
    """

    focus: Focus
    excluded: tuple[str, ...]

    @property
    def message(self) -> str:
        """Which teams the update was about."""
        return _LEAD + ", ".join(sorted(self.focus.teams))


def left_alone(stack: automation.Stack, teams: Collection[str]) -> Neighbours | None:
    """What all teams but these have; None where the stack has nothing yet. Raises CommandError."""
    resources = state.at_hand(stack).resources
    return of_resources(resources, teams) if resources else None


def of_resources(resources: Iterable[Mapping[str, Any]], teams: Collection[str]) -> Neighbours:
    """The same, of a state's resources."""
    parents = {str(it["urn"]): str(it.get("parent", "")) for it in resources}
    excluded = (urn for urn in parents if _team(urn, parents) not in ("", *teams))
    return Neighbours(Focus(frozenset(teams), frozenset(parents)), tuple(excluded))


def was_about(message: str, team: str) -> bool:
    """Whether an update with this message in the history was about a team."""
    return not message.startswith(_LEAD) or team in message.removeprefix(_LEAD).split(", ")


def _team(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource is below, or is; "" for the platform's."""
    while urn:
        kinds, name = urn.split("::", 3)[2:]
        if kinds.rpartition("$")[2] == TEAM:
            return name
        urn = parents.get(urn, "")
    return ""
