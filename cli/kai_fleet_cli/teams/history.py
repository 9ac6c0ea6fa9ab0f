"""What a team ran before, from its stack's history of updates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from kai_fleet_cli.engine.targeting import was_about
from kai_fleet_cli.teams import stack_state
from kai_fleet_cli.teams.lookup import Place

_PAGE: Final = 20  # updates, newest first


def earlier_version(place: Place, variables: Mapping[str, str]) -> str | None:
    """The version of the last finished update in which the team ran another one than is written.

    None where there is no such update. Raises UserError where the history cannot be read.
    """
    return version_before(place, updates(place.stack, variables))


def updates(stack: str, variables: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """A stack's updates, newest first, read as far as they are wanted."""
    for page in count(1):
        asked = ("history", "--json", "--page-size", str(_PAGE), "--page", str(page))
        found = stack_state.ask(stack, variables, *asked)
        yield from found
        if len(found) < _PAGE:
            return


def version_before(place: Place, found: Iterable[Mapping[str, Any]]) -> str | None:
    """The first of these updates, newest first, that went well with another version."""
    for update in found:
        # Previews, removals and failures say nothing about what ran.
        if update.get("kind") != "update" or update.get("result") != "succeeded":
            continue
        if not was_about(str(update.get("message", "")), place.name):
            continue  # its file may have had an edit of this team that was not carried out
        here: Any = _parsed(update.get("config", {}).get(place.keys[1]))
        for name in (*place.keys[2:], "scheduler"):
            here = here.get(name) if isinstance(here, Mapping) else None
        if not isinstance(here, Mapping) or here.get("mode") != "virtual":
            continue
        version = here.get("version")
        if isinstance(version, str) and version != place.version:
            return version
    return None


def _parsed(entry: Any) -> Any:
    """One value of an update's configuration; the engine keeps structured ones as JSON text."""
    value = entry.get("value") if isinstance(entry, Mapping) else None
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
