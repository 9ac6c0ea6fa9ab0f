"""Another KAI version for one team, or the one that it ran before: one line of its stack file."""

from __future__ import annotations

from collections.abc import Callable

from kai_fleet import releases
from kai_fleet_cli.diff.transitions import kai_switch
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.write import edited, read_text
from kai_fleet_cli.teams.lookup import Place, Platform
from kai_fleet_cli.teams.update import Change


def switched(platform: Platform, name: str, version: str) -> Change:
    """The change that gives a team another version. Raises UserError."""
    place = platform.team(name)
    old = running_kai(place)
    known_version(version, untested=place.scheduler.get("untested") is True)
    if version == old:
        raise UserError(f"{place.path} has version {version} already, in {place.file.name}")
    return _change(platform, place, old, version)


def rolled_back(
    platform: Platform, name: str, earlier: Callable[[Place], tuple[str | None, str | None]]
) -> Change:
    """The change back to what a team ran before; `earlier` knows that, and what it runs now.

    Raises UserError.
    """
    place = platform.team(name)
    old = running_kai(place)
    version, runs = earlier(place)
    if version is None:
        raise UserError(
            f"stack {place.stack} has no update in which team {name} ran another version than"
            f" {old}; to change it, run: fleet team switch {name} VERSION --stack {platform.stack}"
        )
    return _change(platform, place, runs or old, version)


def running_kai(place: Place) -> str:
    """The KAI version of a team that has its own; raises UserError for the others."""
    if place.version is not None:
        return place.version
    if place.mode == "host":
        raise UserError(
            f"team {place.name} is in mode host: its pods are scheduled by the host's KAI, for all"
            f" such teams; edit kai-fleet:kai.version in Pulumi.{place.platform}.yaml"
        )
    raise UserError(
        f"team {place.name} is in mode {place.mode}, which has no KAI of its own; write"
        f" {place.path}.scheduler: {{mode: virtual, version: …}} in {place.file.name}"
    )


def known_version(version: str, *, untested: bool = False) -> None:
    """Raise UserError, with the nearest supported versions, for one that is not in the table."""
    try:
        releases.kai(version, untested=untested)
    except releases.UnknownVersionError as why:
        raise UserError(str(why)) from None


def _change(platform: Platform, place: Place, old: str, new: str) -> Change:
    version = (*place.keys, "scheduler", "version")
    return Change(
        platform,
        (edited(place.file, read_text(place.file), {version: new}),),
        (_words(place.name, old, new),),
        (place.stack,),
        (place.name,),
    )


def _words(team: str, old: str, new: str) -> str:
    if old == new:
        return f"{team}: runs KAI {old}; only its file goes back, for its last edit was not applied"
    way = kai_switch(old, new)
    why = f" ({way.reason})" if way.replaced else ""
    return f"{team}: KAI {old} → {new}, {way}{why}; its queues and running pods stay"
