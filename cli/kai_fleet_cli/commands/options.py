"""What commands share: their flags, and how they end."""

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from kai_fleet_cli.display.terminal import Screen, say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.resume import CTRL_C, Interrupted

StackFile = Annotated[str, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")]
NamedStack = Annotated[str, typer.Option("--stack", "-s")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do it without a question.")]
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
                say("interrupted; nothing was changed")
            raise typer.Exit(getattr(why, "exit_code", CTRL_C)) from None
        except EOFError:
            raise UserError("no answer; nothing was changed") from None

    return run


def print_json(record: Any) -> None:
    """Print a command's result for machines."""
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n")


def write_private(content: str, output: Path | None, then: str = "") -> None:
    """Print what is for one pair of eyes, or write it to a file that only its owner reads."""
    from kai_fleet_cli.stack_file import write

    if output is None:
        sys.stdout.write(content)
        return
    try:
        write.put(output, content, 0o600)
    except OSError as why:
        raise UserError(f"{output} cannot be written: {why.strerror}") from None
    Screen.standard().line(f"{output} is written{then and f': {then}'}")
