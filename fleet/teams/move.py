"""Moving a team between stacks: its resources change stacks, and nothing of them is touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi import automation

from components.focus import TEAM
from fleet import engine
from fleet.environment import NotPossible, Say
from fleet.recording import PROJECT
from fleet.recovery import failures
from fleet.stack_file import ROOT


def move(
    team: str,
    source: str,
    dest: str,
    environment: Mapping[str, str],
    say: Say,
    directory: Path = ROOT,
) -> None:
    """Take a team with all that it has from one stack's state to another's.

    Only the two states are written; the next update of each finds everything as it is declared.
    Raises NotPossible, and then neither state has changed.
    """
    if source == dest:
        raise NotPossible(f"team {team} is to move from {source} to itself; name another stack")
    old = engine.stack(source, environment, directory)
    urn = f"urn:pulumi:{source}::{PROJECT}::{TEAM}::{team}"
    here = _urns(old)
    if urn not in here:
        teams = sorted(u.rpartition("::")[2] for u in here if f"::{TEAM}::" in u)
        has = f"its teams: {', '.join(teams)}" if teams else "it has no team"
        raise NotPossible(f"stack {source} runs no team {team}; {has}")
    new = engine.stack(dest, environment, directory)
    if f"urn:pulumi:{dest}::{PROJECT}::{TEAM}::{team}" in _urns(new):
        raise NotPossible(f"stack {dest} runs a team {team} already; remove the one or the other")
    try:
        new.workspace.pulumi_command.run(
            ["state", "move", "--yes", "--source", source, "--dest", dest, urn],
            new.workspace.work_dir,
            {**environment},
        )
    except automation.errors.CommandError as why:
        raise NotPossible(
            f"team {team} stays in stack {source}: {failures.last_words(str(why))}"
        ) from None
    say(f"team {team} is now in stack {dest}; nothing of it was touched")


def _urns(stack: automation.Stack) -> set[str]:
    deployment: Any = stack.export_stack().deployment
    text = deployment if isinstance(deployment, dict) else json.loads(deployment or "{}")
    return {resource["urn"] for resource in text.get("resources") or []}
