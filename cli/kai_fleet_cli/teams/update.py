"""Carry a team command out: judge its edit, show it, ask, write it, run the update."""

from rich.console import Console
from rich.prompt import Confirm

from kai_fleet.settings.files.project import FLEET, update_command
from kai_fleet.settings.team_stack import platform_of
from kai_fleet_cli.display import as_text, terminal
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.environment import for_stack, is_elsewhere
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.teams.changes import Change
from kai_fleet_policies import validation


def carry_out(change: Change, *, yes: bool, no_up: bool) -> bool:
    """Carry out a change as far as the flags say; return whether the update was run.

    `yes`: run it without a question; where a team goes its name is asked for. `no_up`: write the
    file only. Raises UserError.
    """
    console, removes, stack = Console(), change.removes, change.stack
    sure = yes or no_up
    removed = [removes] if removes else []
    again = update_command(stack)
    if removes:
        command = f"{FLEET} team remove {removes} --stack {stack}"
        terminal.require_answer(command, f"team {removes} and all its pods would be gone", yes=sure)
        again = f"{FLEET} up --stack {stack}{resume.naming(removed)}"
    _judge(change, console)
    for line in change.lines():
        terminal.print_line(console, (f"  {line}", "green" if line.startswith("+") else "red"))
    terminal.result(change.sentence)
    run = yes and not no_up
    if removes and not sure:
        terminal.confirm_name(removes)
        run = True
    elif terminal.asks() and not sure:
        run = Confirm.ask("Run the update now?", default=True)
    change.write()
    if not run:
        terminal.result(f"{change.path.name} is written. Next:\n  {again}")
        return False
    try:
        environment = for_stack(stack, validated=False)  # the edit was judged already
        runs.up(runs.stack(stack, environment.variables), removed=removed)
    except UserError as why:
        name = change.path.name
        if not getattr(why, "began", False) and change.undo():
            raise UserError(f"{why}. Nothing was changed, and {name} is as it was") from None
        raise UserError(f"{why}. {name} keeps the edit; go on with:\n  {again}") from None
    terminal.result(f"Done: {change.done}")
    return True


def _judge(change: Change, console: Console) -> None:
    """Raise UserError, with everything that the rules have against it, for a wrong edit."""
    raw = reading.parse(change.after, change.path.name)
    if is_elsewhere(platform_of(raw)):
        return  # the program judges it
    refused = validation.validate(raw, facts_of=facts_beside(change.path)).refused
    as_text.show_problems(refused, console)
    if refused:
        raise UserError("the rules refuse this; nothing is written")
