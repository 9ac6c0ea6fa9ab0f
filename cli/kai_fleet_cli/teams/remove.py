"""Removing a team: what goes with it, said before it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.wording import counted
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.write import Edit, edited, read_text
from kai_fleet_cli.teams import queues as team_queues
from kai_fleet_cli.teams.lookup import GRANTS, Place, Platform
from kai_fleet_cli.teams.update import Change


def removed(
    platform: Platform, place: Place, running: Sequence[Mapping[str, Any]] | None
) -> Change:
    """The change that takes a team away. `running` are its pods; None where nobody was asked.

    Raises UserError.
    """
    edits: list[Edit] = []
    if not place.own:
        edits.append(edited(platform.file, platform.text, {}, gone=[place.keys]))
    elif place.name in (grants := platform.raw.get(GRANTS) or {}):
        key = ("config", f"{NAMESPACE}:{GRANTS}")  # goes with the last grant
        gone = (*key, place.name) if len(grants) > 1 else key
        edits.append(edited(platform.file, platform.text, {}, gone=[gone]))
    if place.own:
        edits.append(Edit(place.file, read_text(place.file), None))
    return Change(
        platform,
        tuple(edits),
        tuple(what_goes(place, running)),
        (platform.stack,),  # also where an earlier try has edited its file, and went no further
        (place.name,),
        (place.stack,) if place.own else (),
    )


def to_remove(platform: Platform, name: str) -> Place:
    """The team of that name; raises UserError with the way on after a removal that was cut off.

    Its own stack and its lines in the file go first, so the platform's part may be left.
    """
    try:
        return platform.team(name)
    except UserError as why:
        go_on = f".venv/bin/fleet up --refresh --stack {platform.stack} --remove-team {name}"
        raise UserError(f"{why}. If its removal was cut off, go on with it: {go_on}") from None


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
        held = cluster_reader.gpus_held(running)
        holding = f", holding {held:g} GPUs" if held else ""
        lines.append(f"  every pod in it: {counted(len(running), 'pod')} now{holding}")
    if place.own:
        lines.append(f"  stack {place.stack}, its history, its file and what the platform granted")
    return lines
