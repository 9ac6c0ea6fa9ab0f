"""Removing a team: what goes with it, said before it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.settings.mistakes import NAMESPACE
from fleet import live
from fleet.environment import NotPossible
from fleet.stack_edit import NotEditable, without
from fleet.stack_write import Edit, read_text
from fleet.teams import queues as team_queues
from fleet.teams.places import GRANTS, Place, Platform
from fleet.teams.update import Change
from fleet.wording import counted


def removed(platform: Platform, name: str, running: Sequence[Mapping[str, Any]] | None) -> Change:
    """The change that takes a team away. `running` are its pods; None where nobody was asked.

    Raises NotPossible.
    """
    place = platform.team(name)
    edits: list[Edit] = []
    try:
        if not place.own:
            edits.append(Edit(platform.file, platform.text, without(platform.text, place.keys)))
        elif name in (grants := platform.raw.get(GRANTS) or {}):
            key = ("config", f"{NAMESPACE}:{GRANTS}")  # goes with the last grant
            after = without(platform.text, (*key, name) if len(grants) > 1 else key)
            edits.append(Edit(platform.file, platform.text, after))
    except NotEditable as why:
        raise NotPossible(f"{platform.file.name}: {why}") from None
    if place.own:
        edits.append(Edit(place.file, read_text(place.file), None))
    return Change(
        platform,
        tuple(edits),
        tuple(what_goes(place, running)),
        (platform.stack,),  # also where an earlier try has edited its file, and went no further
        (name,),
        (place.stack,) if place.own else (),
        leaving=name,
    )


def what_goes(place: Place, running: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Everything that is gone afterwards, in words."""
    name = place.name
    kai = f", its KAI {place.version}" if place.version else ""
    queues = team_queues.names(place.raw.get("queues"))
    lines = [f"{name} goes: namespace team-{name} with its volumes, the vCluster{kai}"]
    if queues:
        lines.append(f"  {counted(len(queues), 'queue')}: {', '.join(queues)}")
    if place.mode == "host" and place.raw.get("queue"):
        lines.append(f"  queue {place.raw['queue']} stays: it is the host's")
    if running is None:
        lines.append("  every pod in it")
    else:
        held = live.gpus_held(running)
        holding = f", holding {held:g} GPUs" if held else ""
        lines.append(f"  every pod in it: {counted(len(running), 'pod')} now{holding}")
    if place.own:
        lines.append(f"  stack {place.stack}, its history, its file and what the platform granted")
    return lines
