"""`fleet cancel` and `fleet restore`: what a killed update left, by Pulumi's own commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.prompt import Confirm

from kai_fleet_cli.commands.options import NamedStack
from kai_fleet_cli.display.screen import say
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError


def cancel(stack: NamedStack) -> None:
    """Take the lock off a stack whose update was killed. The next `up` goes on from there."""
    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.recovery import file_backend

    environment = for_stack(stack, say, validated=False)
    holder = file_backend.holder(stack, environment.variables)
    if holder is not None and holder.alive:
        raise UserError(
            f"stack {stack} is being updated by {holder}, and that process runs. Wait for it, or"
            f" end it first: kill {holder.pid}"
        )
    runs.stack(stack, environment.variables).cancel()
    say(f"stack {stack} is free; run its update again")


def restore(
    stack: NamedStack,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without a question.")] = False,
) -> None:
    """Put back the last good state of a stack whose state cannot be read."""
    from pulumi import automation

    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.recovery import file_backend

    environment = for_stack(stack, say, validated=False)
    copy, deployment = file_backend.newest_copy(stack, environment.variables)
    count = len(deployment.get("resources") or [])
    say(f"the newest copy that can be read is {copy}: {count} resources")
    if not yes and not (sys.stdin.isatty() and Confirm.ask("Import it (pulumi stack import)?")):
        raise UserError(
            f"nothing was done; to import it: .venv/bin/fleet restore --yes --stack {stack}"
        )
    opened = runs.stack(stack, environment.variables)
    opened.import_stack(automation.Deployment(version=3, deployment=deployment))
    say(f"the state of stack {stack} is that copy's; the broken one is beside it, as .bak")
    say(f"to have it say what is there: .venv/bin/fleet up --refresh --stack {stack}")
