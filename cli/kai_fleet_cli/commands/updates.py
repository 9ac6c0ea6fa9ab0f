"""`fleet up`, `preview`, `destroy`: the engine on one stack, as plain `pulumi` runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from kai_fleet.settings.files.project import FLEET, preview_command
from kai_fleet_cli.commands.options import NamedStack, StackFile, Sure
from kai_fleet_cli.display import terminal
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume

if TYPE_CHECKING:
    from pulumi import automation

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

    A team that the file does not declare any more goes only when it is named: by the option, or at
    the question. Where there is no terminal, the program refuses it.
    """
    from kai_fleet_cli.diff.changes import of_steps
    from kai_fleet_cli.display import as_text
    from kai_fleet_cli.engine import runs, summary

    names = remove_team or []
    with resume.resumable_by(lambda: resume.up(stack, names)):
        environment = for_stack(stack)
        opened = runs.stack(stack, environment.variables)
        for team in _unnamed(opened, names) if terminal.asks() else ():
            terminal.result(f"Team {team} would go: its vCluster, every pod and volume in it.")
            terminal.confirm_name(team)
            names.append(team)
        try:
            report = runs.up(opened, refresh=refresh, removed=names)
        except runs.EngineError as why:
            # The rules would refuse that repair because of the teams that are not named.
            if resume.up(stack, names) in str(why) and (left := _unnamed(opened, names)):
                raise UserError(
                    f"{why}. Deployed and not in Pulumi.{stack}.yaml: {', '.join(left)}. Put back"
                    f" there what is to stay; for what is to go add:{resume.naming(left)}"
                ) from None
            raise
    as_text.show_summary(of_steps(report.steps), out)
    summary.show(stack, report, environment.standins, out)


def _unnamed(stack: automation.Stack, names: Sequence[str]) -> Sequence[str]:
    """The teams that an update with the current file would remove, without those of `names`."""
    from pulumi import automation

    from kai_fleet_cli.recovery import state
    from kai_fleet_cli.stack_file import reading
    from kai_fleet_policies import validation

    path = reading.path_of(stack.name)
    facts_of = reading.facts_beside(path)
    verdict = validation.validate(reading.read(path), facts_of=facts_of, only=())
    try:
        urns = state.exported(stack).urns()
    except automation.errors.CommandError:
        return ()
    gone = validation.removal_findings(verdict, urns, stack.name)
    return [finding.name for finding in gone if finding.name not in names]


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
    report = runs.preview(opened, details=details)
    as_text.show_summary(of_steps(report.steps), out)
    if not report.began:
        out.print("Nothing would change.")
    elif not details:
        out.print(f"Every property: {preview_command(stack, details=True)}", highlight=False)


def destroy(stack: NamedStack, refresh: Refresh = False, yes: Sure = False) -> None:
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
    with resume.resumable_by(lambda: resume.destroy(stack)):
        runs.destroy(opened, refresh=refresh)
    environment.vacate()
