"""Moving a team between stacks: its resources change stacks, and nothing of them is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pulumi import automation

from kai_fleet.cli.display.screen import Say
from kai_fleet.cli.engine import runs
from kai_fleet.cli.errors import UserError
from kai_fleet.cli.recovery import failures, state
from kai_fleet.cli.stack_file.reading import PROJECT, ROOT
from kai_fleet.components.state.targeting import TEAM

# Seen with v3.259.0 and v3.274.1: the provider that is a child of what is moved stays behind, and
# neither state is written.
_OWN_CHECKS: Final = ("snapshot integrity error", "failed to verify integrity")
_MOVE: Final = ("state", "move", "--yes", "--source")


def move(
    team: str,
    source: str,
    dest: str,
    environment: Mapping[str, str],
    say: Say,
    sure: Callable[[], bool],
    directory: Path = ROOT,
) -> None:
    """Take a team with all that it has from one stack's state to another's.

    By `pulumi state move`, which is shown and asked about (`sure`). The next update of each stack
    finds everything as it is declared. Raises UserError, and then neither state has changed.
    """
    if source == dest:
        raise UserError(f"team {team} is to move from {source} to itself; name another stack")
    old = runs.stack(source, environment, directory)
    urn = f"urn:pulumi:{source}::{PROJECT}::{TEAM}::{team}"
    here = state.exported(old).urns()
    if urn not in here:
        teams = sorted(u.rpartition("::")[2] for u in here if f"::{TEAM}::" in u)
        has = f"its teams: {', '.join(teams)}" if teams else "it has no team"
        raise UserError(f"stack {source} runs no team {team}; {has}")
    new = runs.stack(dest, environment, directory)
    if f"urn:pulumi:{dest}::{PROJECT}::{TEAM}::{team}" in state.exported(new).urns():
        raise UserError(f"stack {dest} runs a team {team} already; remove the one or the other")
    command = [*_MOVE, source, "--dest", dest, urn]
    say(f"pulumi {' '.join(command)}")
    if not sure():
        raise UserError("nothing is changed")
    try:
        new.workspace.pulumi_command.run(command, new.workspace.work_dir, {**environment})
    except automation.errors.CommandError as why:
        said = failures.last_words(str(why))
        if any(check in str(why) for check in _OWN_CHECKS):
            said = (
                f"`pulumi state move` of CLI v{new.workspace.pulumi_version} fails at its own"
                " check of the states: it parts the vCluster from the provider of what is inside."
                " v3.190.0 does not: run the command above with that CLI"
            )
        raise UserError(f"team {team} stays in stack {source}: {said}") from None
    say(f"team {team} is now in stack {dest}; nothing of it was touched")
