"""What a trial writes where: into the platform's file, or into those of two teams' own stacks.

A team with a stack of its own is tried beside in a second such stack: one account and one grant
each. The trial's grant comes out of the team's, so that the two have what the one had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.write import Edit, edited, read_text
from kai_fleet_cli.teams.add import own_file
from kai_fleet_cli.teams.blue_green.split import Field
from kai_fleet_cli.teams.lookup import GRANTS, Place, Platform, own_stack

_GRANTS = ("config", f"{NAMESPACE}:{GRANTS}")


@dataclass(frozen=True)
class Written:
    """The edits of a trial's begin or end, the stacks to update, and those that are emptied."""

    edits: tuple[Edit, ...]
    updates: tuple[str, ...]
    destroys: tuple[str, ...] = ()


def begun(
    platform: Platform, place: Place, trial: str, team: dict[str, Any], mine: Mapping[Field, Any]
) -> Written:
    """Put `team`, called `beside`, next to one whose own values change to `mine`.

    Raises UserError.
    """
    if not place.own:
        values = _below(place, mine) | {(*place.keys[:2], trial): team}
        return Written((edited(platform.file, platform.text, values),), (platform.stack,))
    cluster = platform.raw.get("cluster")
    if not isinstance(cluster, Mapping) or "context" not in cluster:
        raise UserError(
            f"{platform.file.name} names no context, so that {trial} needs credentials of its own"
            f" in its stack file; add it with fleet team add {trial} --own-stack --no-up, and"
            f" lower what team {place.name} has and is granted"
        )
    gpus = team["gpus"]
    values = {
        (*_GRANTS, place.name, "gpus"): _granted(platform, place) - gpus,
        (*_GRANTS, trial): {"nodePool": team["nodePool"], "gpus": gpus},
    }
    edits = (
        edited(platform.file, platform.text, values),
        _own_edit(place, mine),
        own_file(platform, trial, team),
    )
    # The team gives up its part before the other one takes it.
    order = (platform.stack, place.stack, own_stack(platform.stack, trial))
    return Written(edits, order)


def ended(platform: Platform, place: Place, trial: Place, mine: Mapping[Field, Any]) -> Written:
    """Take the trial away and give the team its part back, `mine` being its own values then.

    Raises UserError.
    """
    if place.own != trial.own:
        where = "stacks of their own" if place.own else f"stack {platform.stack}"
        raise UserError(
            f"teams {place.name} and {trial.name} are not both in {where}; end the trial by hand:"
            f" fleet team remove {trial.name}"
        )
    if not place.own:
        gone = (*place.keys[:2], trial.name)
        edit = edited(platform.file, platform.text, _below(place, mine), gone=[gone])
        return Written((edit,), (platform.stack,))
    both = _granted(platform, place) + _granted(platform, trial)
    grants: Mapping[Field, Any] = {(*_GRANTS, place.name, "gpus"): both}
    edits = (
        edited(platform.file, platform.text, grants, gone=[(*_GRANTS, trial.name)]),
        _own_edit(place, mine),
        Edit(trial.file, read_text(trial.file), None),
    )
    return Written(edits, (platform.stack, place.stack), (trial.stack,))


def _granted(platform: Platform, place: Place) -> int:
    """The GPUs of a team's grant. Raises UserError where there is no such grant."""
    grants = platform.raw.get(GRANTS)
    grant = grants.get(place.name) if isinstance(grants, Mapping) else None
    gpus = grant.get("gpus") if isinstance(grant, Mapping) else None
    if not isinstance(gpus, int):
        raise UserError(
            f"{platform.file.name} grants team {place.name} no GPUs; write"
            f" {NAMESPACE}:{GRANTS}.{place.name}.gpus"
        )
    return gpus


def _own_edit(place: Place, mine: Mapping[Field, Any]) -> Edit:
    return edited(place.file, read_text(place.file), _below(place, mine))


def _below(place: Place, mine: Mapping[Field, Any]) -> dict[Field, Any]:
    return {(*place.keys, *field): value for field, value in mine.items()}
