"""Carry a team command out: judge its edit, show it, ask, write it, run the update."""

from rich.markup import escape
from rich.prompt import Confirm

from kai_fleet.settings.files.project import FLEET, update_command
from kai_fleet.settings.team_stack import platform_of
from kai_fleet_cli.display import as_text
from kai_fleet_cli.display.terminal import Screen
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.environment import for_stack, is_elsewhere
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.teams.changes import Change
from kai_fleet_policies import validation


def carry_out(change: Change, *, yes: bool, no_up: bool) -> bool:
    """Do it as far as the flags say: whether the update was run. Raises UserError.

    `yes`: run it without a question; where a team goes its name is asked for. `no_up`: write the
    file only.
    """
    screen, edit, removes = Screen.standard(), change.edit, change.removes
    sure = yes or no_up
    if removes:
        command = f"{FLEET} team remove {removes} --stack {change.file.stack}"
        screen.require_answer(command, f"team {removes} and all its pods would be gone", yes=sure)
    _judge(change, screen)
    for line in edit.lines():
        colour = "green" if line.startswith("+") else "red"
        screen.out.print(f"  [{colour}]{escape(line)}[/]", highlight=False, soft_wrap=True)
    screen.line(change.sentence)
    run = yes and not no_up
    if removes and not sure:
        screen.confirm_name(removes)
        run = True
    elif screen.asks and not sure:
        run = Confirm.ask("Run the update now?", default=True, console=screen.out)
    edit.write()
    if not run:
        screen.line(f"{edit.path.name} is written. Next:\n  {_again(change)}")
        return False
    with resume.resumable_by(lambda: resume.up(change.file.stack, _going(change))):
        _run(change)
    screen.line(f"Done: {change.done}")
    return True


def _judge(change: Change, screen: Screen) -> None:
    """Raise UserError, with everything that the rules have against it, for a wrong edit."""
    file = change.file.path
    raw = reading.parse(change.edit.after, file.name)
    if is_elsewhere(platform_of(raw)):
        return  # the program judges it
    refused = validation.validate(raw, facts_of=facts_beside(file)).refused
    for problem in refused:
        as_text.show_problem(problem, screen.out)
    if refused:
        raise UserError("the rules refuse this; nothing is written")


def _run(change: Change) -> None:
    """Update the whole stack. Raises UserError, which says what became of the file."""
    stack, name = change.file.stack, change.edit.path.name
    try:
        environment = for_stack(stack, validated=False)  # the edit was judged already
        runs.up(runs.stack(stack, environment.variables), removed=_going(change))
    except UserError as why:
        if not getattr(why, "began", False) and change.edit.undo():
            raise UserError(f"{why}. Nothing was changed, and {name} is as it was") from None
        raise UserError(f"{why}. {name} keeps the edit; go on with:\n  {_again(change)}") from None


def _going(change: Change) -> list[str]:
    return [change.removes] if change.removes else []


def _again(change: Change) -> str:
    """The command that makes what is written."""
    if not change.removes:
        return update_command(change.file.stack)
    return f"{FLEET} up --stack {change.file.stack}{resume.naming(_going(change))}"
