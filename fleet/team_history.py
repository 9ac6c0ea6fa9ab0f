"""What a team ran before, from its stack's history of updates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pulumi import automation

from fleet.environment import NotPossible
from fleet.team_places import Place


def earlier_version(place: Place, stack: automation.Stack) -> str | None:
    """The version of the last finished update in which the team ran another one than is written.

    None where there is no such update. Raises NotPossible where the history cannot be read.
    """
    try:
        updates = stack.history(show_secrets=False)
    except automation.errors.CommandError as why:
        last = str(why).strip().splitlines()[-1].strip()
        raise NotPossible(f"the history of stack {stack.name} cannot be read: {last}") from None
    return version_before(place, [u.config for u in updates if finished(u)])


def finished(update: automation.UpdateSummary) -> bool:
    """Whether an update of the stack went well; previews, removals and failures do not count."""
    return update.kind == "update" and update.result == "succeeded"


def version_before(place: Place, configs: Sequence[Mapping[str, Any]]) -> str | None:
    """The first of these configurations, newest first, that has another version for the team."""
    key = place.keys[1]
    for config in configs:
        here: Any = parsed(config.get(key))
        for name in (*place.keys[2:], "scheduler"):
            here = here.get(name) if isinstance(here, Mapping) else None
        if not isinstance(here, Mapping) or here.get("mode") != "virtual":
            continue
        version = here.get("version")
        if isinstance(version, str) and version != place.version:
            return version
    return None


def parsed(entry: Any) -> Any:
    """One value of an update's configuration; the engine keeps structured ones as JSON text."""
    value = entry.get("value") if isinstance(entry, Mapping) else getattr(entry, "value", None)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
