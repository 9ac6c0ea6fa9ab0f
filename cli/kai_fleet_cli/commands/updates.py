"""`fleet up`, `preview`, `drift`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from kai_fleet_cli.commands.options import NamedStack, StackFile
from kai_fleet_cli.display.screen import engine_line, say
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.engine.interruption import resumable_by
from kai_fleet_cli.errors import UserError

out = Console()  # rich leaves colours out where this is no terminal, and for NO_COLOR

DRIFT = 3  # the exit code of `fleet drift` where something was changed by hand
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="First see what is there, and mend what a killed run left."),
]


def up(
    stack: StackFile = "sandbox",
    refresh: Refresh = False,
    remove_team: Annotated[
        list[str] | None,
        typer.Option("--remove-team", help="A team that is no longer declared may go."),
    ] = None,
) -> None:
    """Make the cluster as declared. On the sandbox's stacks, start the sandbox first.

    A team that the file does not declare any more goes only when it is named.
    """
    from kai_fleet_cli.engine import removal_question, runs, summary
    from kai_fleet_cli.recovery import failures
    from kai_fleet_policies.unnamed_removals import VARIABLE

    names = remove_team or []
    with resumable_by(f"up --refresh --stack {stack}", say):
        environment = for_stack(stack, say)
        by_name = {VARIABLE: ",".join(names)} if names else {}
        opened = runs.stack(stack, {**environment.variables, **by_name})
        try:
            try:
                outcome = runs.up(opened, engine_line, color=out.is_terminal, refresh=refresh)
            except runs.EngineError:
                if not (names := removal_question.named(opened, names, out)):
                    raise
                opened = runs.stack(stack, {**environment.variables, VARIABLE: ",".join(names)})
                outcome = runs.up(opened, engine_line, color=out.is_terminal, refresh=refresh)
        except UserError as why:
            raise UserError(failures.naming(str(why), stack, names)) from None
    summary.show(stack, outcome, environment.standins, out)


def preview(
    stack: StackFile = "sandbox",
    details: Annotated[
        bool, typer.Option("--details", help="Every property, old and new.")
    ] = False,
) -> None:
    """Say what `up` would change, resource by resource, with every rule's verdict."""
    from kai_fleet_cli.engine import runs

    environment = for_stack(stack, say)
    opened = runs.stack(stack, environment.variables)
    if runs.preview(opened, engine_line, color=out.is_terminal, details=details).unchanged:
        out.print("Nothing would change.")
    elif not details:
        out.print(f"Every property: make preview STACK={stack} DETAILS=1", highlight=False)


def drift(stack: StackFile = "sandbox") -> None:
    """Say what was changed by hand since the last update; it changes nothing.

    Exit 0: nothing. 1: it cannot be looked at. 3: something.
    """
    from kai_fleet_cli.engine import runs

    environment = for_stack(stack, say, validated=False)
    found = runs.drift(runs.stack(stack, environment.variables), engine_line)
    for name, operation in found.resources.items():
        out.print(f"{name}: {'gone' if operation == 'delete' else 'changed'}", highlight=False)
    if found.resources:
        say(f"To make it as declared again: .venv/bin/fleet up --refresh --stack {stack}")
        raise typer.Exit(DRIFT)
    if found.silent:
        told = "; ".join(f"{name}: {why}" for name, why in found.silent.items())
        raise UserError(f"not every vCluster of stack {stack} can be looked at: {told}")
    out.print("Nothing was changed by hand.")


def destroy(stack: NamedStack, refresh: Refresh = False) -> None:
    """Remove everything that a stack made from its cluster."""
    from kai_fleet_cli.engine import runs

    with resumable_by(f"destroy --refresh --stack {stack}", say):
        environment = for_stack(stack, say, validated=False)
        opened = runs.stack(stack, environment.variables)
        runs.destroy(opened, engine_line, color=out.is_terminal, refresh=refresh)
    environment.vacate()
