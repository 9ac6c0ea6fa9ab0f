"""Asking at a terminal about teams that an update would remove."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pulumi import automation
from rich.console import Console
from rich.prompt import Prompt

from kai_fleet.state.deployed_state import teams_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_policies import unnamed_removals, validation


def named(stack: automation.Stack, already: Sequence[str], console: Console) -> list[str]:
    """The teams that somebody at the terminal wants removed, besides those named `already`.

    Empty where nobody is there to ask, or no team would go. Raises UserError where the answer is
    another name.
    """
    if not _somebody_is_there(console):
        return []
    path = reading.path_of(stack.name)
    settings = validation.validate_types(reading.read(path), facts_of=facts_beside(path)).settings
    if settings is None:
        return []
    try:
        deployed = teams_of(state.exported(stack).urns())
    except automation.errors.CommandError:
        return []
    found: list[str] = []
    for team in unnamed_removals.unnamed(settings, deployed):
        console.print(
            f"Team {team} would go: its vCluster, every pod and every volume in it.",
            highlight=False,
        )
        answer = Prompt.ask(f"Type {team} to remove it", console=console, default="no")
        if answer.strip() != team:
            raise UserError(
                f"team {team} stays, and nothing is changed; put it back in {path.name}"
            )
        found.append(team)
    return [*already, *found] if found else []


def _somebody_is_there(console: Console) -> bool:
    return sys.stdin.isatty() and console.is_terminal
