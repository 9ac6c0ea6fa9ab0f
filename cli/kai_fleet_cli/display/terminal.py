"""Print and ask at the terminal.

No line is broken here: the terminal wraps it, and what is copied from it is in one piece.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

from kai_fleet.settings.files.project import FLEET
from kai_fleet.wording import with_colours, without_controls
from kai_fleet_cli.errors import UserError

_RUNS_PULUMI: Final = re.compile(r"(^|[\s`])pulumi [a-z]", re.MULTILINE)


def print_line(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print text on one line, without control characters. A part may have a style."""
    styled = (part if isinstance(part, tuple) else (part, "") for part in parts)
    text = Text.assemble(*((without_controls(words), style) for words, style in styled))
    console.print(text, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of progress on stderr."""
    print_line(Console(stderr=True), text)


def result(text: str) -> None:
    """Print a line of a command's result on stdout."""
    print_line(Console(), text)


def pulumi_first(text: str) -> str:
    """What to run before a printed command of Pulumi's that this shell does not find; else ""."""
    if _RUNS_PULUMI.search(text) is None or shutil.which("pulumi"):
        return ""
    return (
        "pulumi is not on the PATH of this shell; where the stack is on the sandbox, first:"
        f' eval "$({FLEET} sandbox env)"'
    )


def print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below headings.

    The last cell of a row may take several lines. No name is broken: a table may be wider than
    the console.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    least = 0
    for number, column in enumerate(zip(headings, *rows, strict=True), 1):
        names = column if number < len(headings) else " ".join(column).split()
        table.add_column(column[0], min_width=(width := max(map(len, names))))
        least += width + 2
    for row in rows:
        table.add_row(*(Text(without_controls(cell)) for cell in row))
    console.print(table, width=max(console.width, least), crop=False)


def asks() -> bool:
    """Whether a person is at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def require_answer(command: str, loss: str, *, yes: bool) -> None:
    """Refuse before anything is read where nobody can be asked and there is no `--yes`.

    `command` deletes, `loss` says what. Raises UserError with the command to write.
    """
    if not (yes or asks()):
        raise UserError(f"{loss}; there is no terminal to ask at, so write --yes: {command} --yes")


def confirm_name(name: str, what: str = "remove it") -> None:
    """Ask for the name of what is to be removed. Raises UserError for every other answer."""
    if Prompt.ask(f"Type {name} to {what}", default="no").strip() != name:
        raise UserError("nothing is changed")


def engine_line(line: str) -> None:
    """Print a line of the engine; drop it once the reader is gone (`| head`): the run goes on.

    It may quote a pod or an API server: of its escape sequences only colours are printed.
    """
    try:
        sys.stdout.write(with_colours(line.rstrip("\n")) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
