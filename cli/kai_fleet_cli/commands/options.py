"""What commands share: their flags, how they end, and what follows a new team."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

from kai_fleet_cli.display.screen import Flags, Screen
from kai_fleet_cli.engine.interruption import Interrupted, exit_code
from kubectl_fleet.errors import UserError
from kubectl_fleet.paths import value_at

if TYPE_CHECKING:
    from kai_fleet_cli.teams.changes import TeamChange

Name = Annotated[str, typer.Argument(help="The team's name.")]
Version = Annotated[str, typer.Argument(help="A KAI version such as v0.16.8.")]
Stack = Annotated[
    str, typer.Option("--stack", "-s", help="The platform's stack: Pulumi.STACK.yaml.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Run the update without a question.")]
StackFile = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]
NamedStack = Annotated[str, typer.Option("--stack", "-s")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
NoUp = Annotated[bool, typer.Option("--no-up", help="Write the file, and leave the update to you.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A file, readable only by you.")
]
P = ParamSpec("P")
R = TypeVar("R")


def with_exit_codes(command: Callable[P, R]) -> Callable[P, R]:
    """Exit codes for a command that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as why:
            if not isinstance(why, Interrupted):
                Screen.standard().say("interrupted; nothing was changed")
            raise typer.Exit(exit_code(why)) from None
        except EOFError:
            raise UserError("no answer; nothing was changed") from None

    return run


def finish(change: TeamChange, flags: Flags, screen: Screen, done: str) -> None:
    """Carry a change out, and say so where it was."""
    from kai_fleet_cli.teams import update

    if update.carry_out(change, flags, screen) is not None:
        screen.line(f"Done: {done}.")


def print_json(record: Any) -> None:
    """Print a command's result for machines."""
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def write_private(content: str, output: Path | None, then: str = "") -> None:
    """Print what is for one pair of eyes, or write it to a file that only its owner reads."""
    from kai_fleet_cli.stack_file import write

    if output is None:
        sys.stdout.write(content)
        return
    try:
        write.put(output, content, 0o600, keep_mode=False)
    except OSError as why:
        raise UserError(f"{output} cannot be written: {why.strerror}") from None
    Screen.standard().line(f"{output} is written{then and f': {then}'}")


def make(change: TeamChange, flags: Flags, screen: Screen, name: str) -> None:
    """Carry out what makes a team, and say what to do first with it."""
    from kai_fleet_cli.display import first_steps
    from kai_fleet_cli.teams import update

    outputs = update.carry_out(change, flags, screen)
    if outputs is not None:
        resource = value_at(change.platform.raw, "gpu.resource") or "nvidia.com/gpu"
        about = outputs.get("teams", {}).get(name, {})
        screen.line(first_steps.next_steps(change.platform.stack, name, about, resource))
