"""Another KAI version for one team, or the one that it ran before: one line of its stack file."""

from __future__ import annotations

from collections.abc import Callable

from components import releases
from fleet.diffs.transitions_in_words import kai_switch
from fleet.environment import NotPossible
from fleet.stack_edit import NotEditable, with_value
from fleet.stack_write import Edit, read_text
from fleet.teams.places import Place, Platform
from fleet.teams.update import Change


def switched(platform: Platform, name: str, version: str) -> Change:
    """The change that gives a team another version. Raises NotPossible."""
    place = platform.team(name)
    old = running_kai(place)
    known_version(version, untested=place.scheduler.get("untested") is True)
    if version == old:
        raise NotPossible(f"{place.path} has version {version} already, in {place.file.name}")
    return _change(platform, place, old, version)


def rolled_back(platform: Platform, name: str, earlier: Callable[[Place], str | None]) -> Change:
    """The change back to what a team ran before; `earlier` knows it. Raises NotPossible."""
    place = platform.team(name)
    old = running_kai(place)
    version = earlier(place)
    if version is None:
        raise NotPossible(
            f"stack {place.stack} has no update in which team {name} ran another version than"
            f" {old}; to change it, run: fleet team switch {name} VERSION --stack {platform.stack}"
        )
    return _change(platform, place, old, version)


def running_kai(place: Place) -> str:
    """The KAI version of a team that has its own; raises NotPossible for the others."""
    if place.version is not None:
        return place.version
    if place.mode == "host":
        raise NotPossible(
            f"team {place.name} is in mode host: its pods are scheduled by the host's KAI, for all"
            f" such teams; edit kai-fleet:kai.version in Pulumi.{place.platform}.yaml"
        )
    raise NotPossible(
        f"team {place.name} is in mode {place.mode}, which has no KAI of its own; write"
        f" {place.path}.scheduler: {{mode: virtual, version: …}} in {place.file.name}"
    )


def known_version(version: str, *, untested: bool = False) -> None:
    """Raise NotPossible, with the nearest supported versions, for one that is not in the table."""
    try:
        releases.kai(version, untested=untested)
    except releases.UnknownVersion as why:
        raise NotPossible(str(why)) from None


def _change(platform: Platform, place: Place, old: str, new: str) -> Change:
    before = read_text(place.file)
    keys = (*place.keys, "scheduler", "version")
    try:
        after = with_value(before, keys, new)
    except NotEditable as why:
        raise NotPossible(f"{place.file.name}: {why}") from None
    return Change(
        platform,
        (Edit(place.file, before, after),),
        (_words(place.name, old, new),),
        (place.stack,),
        (place.name,),
    )


def _words(team: str, old: str, new: str) -> str:
    way = kai_switch(old, new)
    why = f" ({way.reason})" if way.replaced else ""
    return f"{team}: KAI {old} → {new}, {way}{why}; its queues and running pods stay"
