"""`fleet up`, `preview`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from typing import Annotated

import typer
from rich.console import Console

from kai_fleet.settings.files.project import FLEET, preview_command
from kai_fleet_cli.commands.options import StackFile, Sure
from kai_fleet_cli.display import terminal
from kai_fleet_cli.engine.environment import for_stack

out = Console()  # rich leaves colours out where this is no terminal, and for NO_COLOR

Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="First see what is there, and repair what a killed run left."),
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

    A team that the file does not declare any more goes only when the option names it; else the
    program refuses.
    """
    from kai_fleet_cli.diff.changes import of_steps
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.engine import report, runs

    environment = for_stack(stack)
    opened = runs.stack(stack, environment.variables)
    ran = runs.up(opened, refresh=refresh, removed=remove_team or ())
    as_text.show_summary(of_steps(ran.steps), out)
    report.show_teams(stack, ran, environment.standins, out)


def preview(
    stack: StackFile = "sandbox",
    details: Annotated[
        bool, typer.Option("--details", help="Every property, old and new.")
    ] = False,
) -> None:
    """Show what `up` would change, resource by resource, with every rule's verdict."""
    from kai_fleet_cli.diff.changes import of_steps
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.engine import runs

    opened = runs.stack(stack, for_stack(stack).variables)
    ran = runs.preview(opened, details=details)
    as_text.show_summary(of_steps(ran.steps), out)
    if not ran.began:
        terminal.result("Nothing would change.")
    elif not details:
        terminal.result(f"Every property: {preview_command(stack, details=True)}")


def destroy(
    stack: Annotated[str, typer.Option("--stack", "-s")],
    refresh: Refresh = False,
    yes: Sure = False,
) -> None:
    """Remove everything that a stack made from its cluster; its name has to be typed, or --yes."""
    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.teams import changes

    command = f"{FLEET} destroy --stack {stack}{' --refresh' if refresh else ''}"
    loss = f"stack {stack} and every team in it would be gone"
    terminal.require_answer(command, loss, yes=yes)
    environment = for_stack(stack, validated=False)
    opened = runs.stack(stack, environment.variables)
    file = changes.stack_file(stack)
    for name in file.teams:
        terminal.result(f"  team {name} goes: its vCluster, every pod and every volume in it")
    for name in file.grants:
        terminal.result(f"  team {name} loses its namespace: destroy its own stack first")
    if not yes:
        terminal.confirm_name(stack)
    runs.destroy(opened, refresh=refresh)
    environment.vacate()
