"""The last changes of a stack, from Pulumi's own history of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kai_fleet_cli.report.model import Change
from kai_fleet_cli.teams import stack_state

SHOWN: Final = 10  # changes, newest first
_VERBS: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
}


def last_changes(stack: str, variables: Mapping[str, str]) -> tuple[Change, ...]:
    """The newest updates of a stack. Raises UserError where the history cannot be read."""
    found = stack_state.ask(stack, variables, "history", "--json", "--page-size", str(SHOWN))
    return tuple(_change(update) for update in found if update.get("startTime"))


def _change(update: Mapping[str, Any]) -> Change:
    counts = update.get("resourceChanges") or {}
    environment = update.get("environment") or {}
    made = [f"{counts[op]} {word}" for op, word in _VERBS.items() if counts.get(op)]
    return Change(
        when=datetime.fromisoformat(str(update["startTime"]).replace("Z", "+00:00")),
        kind=str(update.get("kind", "")),
        result=str(update.get("result", "")),
        who=str(environment.get("git.author") or ""),
        message=str(update.get("message") or "").partition("\n")[0],
        resources=", ".join(made),
    )
