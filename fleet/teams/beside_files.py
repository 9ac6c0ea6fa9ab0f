"""What a trial writes where: into the platform's file, or into those of two teams' own stacks.

A team with a stack of its own is tried beside in a second such stack: one account and one grant
each. The trial's grant comes out of the team's, so that the two have what the one had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.settings.mistakes import NAMESPACE
from fleet.environment import NotPossible
from fleet.stack_edit import NotEditable, with_values, without
from fleet.stack_write import Edit, read_text
from fleet.teams.add import own_file
from fleet.teams.places import GRANTS, Place, Platform, own_stack
from fleet.teams.split import Field

_GRANTS = ("config", f"{NAMESPACE}:{GRANTS}")


@dataclass(frozen=True)
class Written:
    """The edits of a trial's begin or end, the stacks to update, and those that are emptied."""

    edits: tuple[Edit, ...]
    updates: tuple[str, ...]
    destroys: tuple[str, ...] = ()


def begun(
    platform: Platform, place: Place, beside: str, team: dict[str, Any], mine: Mapping[Field, Any]
) -> Written:
    """Put `team`, called `beside`, next to one whose own values change to `mine`.

    Raises NotPossible.
    """
    if not place.own:
        values = _below(place, mine) | {(*place.keys[:2], beside): team}
        text = _edited(platform.file.name, platform.text, values)
        return Written((Edit(platform.file, platform.text, text),), (platform.stack,))
    cluster = platform.raw.get("cluster")
    if not isinstance(cluster, Mapping) or "context" not in cluster:
        raise NotPossible(
            f"{platform.file.name} names no context, so that {beside} needs credentials of its own"
            f" in its stack file; add it with fleet team add {beside} --own-stack --no-up, and"
            f" lower what team {place.name} has and is granted"
        )
    gpus = team["gpus"]
    values = {
        (*_GRANTS, place.name, "gpus"): _granted(platform, place) - gpus,
        (*_GRANTS, beside): {"nodePool": team["nodePool"], "gpus": gpus},
    }
    grants = _edited(platform.file.name, platform.text, values)
    edits = (
        Edit(platform.file, platform.text, grants),
        _own_edit(place, mine),
        own_file(platform, beside, team),
    )
    # The team gives up its part before the other one takes it.
    order = (platform.stack, place.stack, own_stack(platform.stack, beside))
    return Written(edits, order)


def ended(platform: Platform, place: Place, beside: Place, mine: Mapping[Field, Any]) -> Written:
    """Take the trial away and give the team its part back, `mine` being its own values then.

    Raises NotPossible.
    """
    if place.own != beside.own:
        where = "stacks of their own" if place.own else f"stack {platform.stack}"
        raise NotPossible(
            f"teams {place.name} and {beside.name} are not both in {where}; end the trial by hand:"
            f" fleet team remove {beside.name}"
        )
    if not place.own:
        text = _edited(platform.file.name, platform.text, _below(place, mine))
        text = _without(platform.file.name, text, (*place.keys[:2], beside.name))
        return Written((Edit(platform.file, platform.text, text),), (platform.stack,))
    both = _granted(platform, place) + _granted(platform, beside)
    grants = _edited(platform.file.name, platform.text, {(*_GRANTS, place.name, "gpus"): both})
    edits = (
        Edit(
            platform.file,
            platform.text,
            _without(platform.file.name, grants, (*_GRANTS, beside.name)),
        ),
        _own_edit(place, mine),
        Edit(beside.file, read_text(beside.file), None),
    )
    return Written(edits, (platform.stack, place.stack), (beside.stack,))


def _granted(platform: Platform, place: Place) -> int:
    """The GPUs of a team's grant. Raises NotPossible where there is no such grant."""
    grants = platform.raw.get(GRANTS)
    grant = grants.get(place.name) if isinstance(grants, Mapping) else None
    gpus = grant.get("gpus") if isinstance(grant, Mapping) else None
    if not isinstance(gpus, int):
        raise NotPossible(
            f"{platform.file.name} grants team {place.name} no GPUs; write"
            f" {NAMESPACE}:{GRANTS}.{place.name}.gpus"
        )
    return gpus


def _own_edit(place: Place, mine: Mapping[Field, Any]) -> Edit:
    before = read_text(place.file)
    return Edit(place.file, before, _edited(place.file.name, before, _below(place, mine)))


def _below(place: Place, mine: Mapping[Field, Any]) -> dict[Field, Any]:
    return {(*place.keys, *field): value for field, value in mine.items()}


def _edited(file: str, text: str, values: Mapping[Field, Any]) -> str:
    try:
        return with_values(text, values)
    except NotEditable as why:
        raise NotPossible(f"{file}: {why}") from None


def _without(file: str, text: str, keys: Field) -> str:
    try:
        return without(text, keys)
    except NotEditable as why:
        raise NotPossible(f"{file}: {why}") from None
