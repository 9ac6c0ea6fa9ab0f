"""`fleet up`, `preview`, `drift`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt

from kai_fleet_cli.commands.options import NamedStack, StackFile
from kai_fleet_cli.display.screen import engine_line, say
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.engine.interruption import resumable_by
from kai_fleet_cli.errors import UserError

if TYPE_CHECKING:
    from pulumi import automation

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
    from kai_fleet_cli.engine import runs, summary
    from kai_fleet_cli.recovery import failures
    from kai_fleet_policies.unnamed_removals import VARIABLE

    names = remove_team or []
    with resumable_by(f"up --refresh --stack {stack}", say):
        environment = for_stack(stack, say)

        def opened() -> automation.Stack:
            by_name = {VARIABLE: ",".join(names)} if names else {}
            return runs.stack(stack, {**environment.variables, **by_name})

        def update(of: automation.Stack) -> runs.Outcome:
            return runs.up(of, engine_line, color=out.is_terminal, refresh=refresh)

        first = opened()
        try:
            try:
                outcome = update(first)
            except runs.EngineError:
                if not (more := _confirmed_removals(first, names)):
                    raise
                names = [*names, *more]
                outcome = update(opened())
        except UserError as why:
            raise UserError(failures.naming(str(why), stack, names)) from None
    summary.show(stack, outcome, environment.standins, out)


def _confirmed_removals(stack: automation.Stack, names: Sequence[str]) -> Sequence[str]:
    """Ask at a terminal about each team that the update would remove and that `names` lacks.

    Empty where there is no terminal, or no team would go. Raises UserError where the answer is
    another name.
    """
    from pulumi import automation

    from kai_fleet.state.deployed_state import teams_of
    from kai_fleet_cli.recovery import state
    from kai_fleet_cli.stack_file import reading
    from kai_fleet_cli.stack_file.platform import facts_beside
    from kai_fleet_policies import unnamed_removals, validation

    if not _at_a_terminal():
        return ()
    path = reading.path_of(stack.name)
    settings = validation.validate_types(reading.read(path), facts_of=facts_beside(path)).settings
    if settings is None:
        return ()
    try:
        deployed = teams_of(state.exported(stack).urns())
    except automation.errors.CommandError:
        return ()
    teams = [it for it in unnamed_removals.unnamed(settings, deployed) if it not in names]
    for team in teams:
        out.print(
            f"Team {team} would go: its vCluster, every pod and every volume in it.",
            highlight=False,
        )
        answer = Prompt.ask(f"Type {team} to remove it", console=out, default="no")
        if answer.strip() != team:
            raise UserError(
                f"team {team} stays, and nothing is changed; put it back in {path.name}"
            )
    return teams


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and out.is_terminal


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
    drifted = runs.drift(runs.stack(stack, environment.variables), engine_line)
    for name, operation in drifted.resources.items():
        out.print(f"{name}: {'gone' if operation == 'delete' else 'changed'}", highlight=False)
    if drifted.resources:
        say(f"To make it as declared again: .venv/bin/fleet up --refresh --stack {stack}")
        raise typer.Exit(DRIFT)
    if drifted.silent:
        silent = "; ".join(f"{name}: {why}" for name, why in drifted.silent.items())
        raise UserError(f"not every vCluster of stack {stack} can be looked at: {silent}")
    out.print("Nothing was changed by hand.")


def destroy(stack: NamedStack, refresh: Refresh = False) -> None:
    """Remove everything that a stack made from its cluster."""
    from kai_fleet_cli.engine import runs

    with resumable_by(f"destroy --refresh --stack {stack}", say):
        environment = for_stack(stack, say, validated=False)
        opened = runs.stack(stack, environment.variables)
        runs.destroy(opened, engine_line, color=out.is_terminal, refresh=refresh)
    environment.vacate()
