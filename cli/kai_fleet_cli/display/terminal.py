"""Print and ask at the terminal.

No line is broken here. The terminal wraps long ones, so that copied text is in one piece.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

from kai_fleet.names import FLEET
from kai_fleet.wording import with_colours, without_controls
from kai_fleet_cli.errors import UserError

_PULUMI_COMMAND = re.compile(r"(^|[\s`])pulumi [a-z]", re.MULTILINE)


def _print_line(console: Console, parts: Iterable[str | tuple[str, str]]) -> None:
    """Print the parts as one text, without control characters. A part may be (text, rich's style).

    Line breaks and tabs in it stay; a text is never read as rich's markup.
    """
    line = Text()
    for part in parts:
        if isinstance(part, str):
            line.append(without_controls(part))
        else:
            text, style = part
            line.append(without_controls(text), style)
    console.print(line, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of progress on stderr, without control characters."""
    _print_line(Console(stderr=True), [text])


def result(*parts: str | tuple[str, str]) -> None:
    """Print a line of a command's result on stdout, without control characters.

    The parts are one text, without line breaks between them. A part may be (text, rich's style).
    """
    _print_line(Console(), parts)


def pulumi_first(text: str) -> str:
    """Advice how to get `pulumi` onto the PATH, if a text has a command of Pulumi's.

    It is "" if the text has none, or if `pulumi` is on the PATH already.
    """
    if _PULUMI_COMMAND.search(text) is None or shutil.which("pulumi"):
        return ""
    return (
        "pulumi is not on the PATH of this shell; where the stack is on the sandbox, first:"
        f' eval "$({FLEET} sandbox env)"'
    )


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below headings, without control characters. Each row has a cell for each heading:
    raises ValueError for another number of cells.

    No cell is broken, so a table may be wider than the terminal. Only cells of the last column may
    take several lines, broken between words.
    """
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    columns = list(zip(headings, *rows, strict=True))
    table_width = 0
    for column in columns:
        is_last = column is columns[-1]
        unbroken = " ".join(column).split() if is_last else column
        width = max(map(len, unbroken), default=0)
        table.add_column(column[0], min_width=width)
        table_width += width + 2
    for row in rows:
        cells = [Text(without_controls(cell)) for cell in row]
        table.add_row(*cells)
    console.print(table, width=max(console.width, table_width), crop=False)


def can_ask() -> bool:
    """Whether somebody can be asked: both stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def require_answer(command: str, loss: str, *, yes: bool) -> None:
    """Refuse a command that deletes, if there is neither `--yes` nor a terminal to ask at.

    Called before anything is read. `loss` is what would be lost, as a sentence without a full stop.
    Raises UserError with the loss and with `command` to be run with `--yes`.
    """
    if not (yes or can_ask()):
        raise UserError(f"{loss}; there is no terminal to ask at, so write --yes: {command} --yes")


def confirm_name(name: str, what: str = "remove it") -> None:
    """Ask to type a name as consent to `what`.

    Spaces around the answer do not count. Raises UserError for any other answer, also for Enter
    alone; EOFError at the end of stdin.
    """
    if Prompt.ask(f"Type {name} to {what}", default="", show_default=False).strip() != name:
        raise UserError("nothing is changed")


def engine_line(line: str) -> None:
    """Print a line of the engine's output on stdout, without control characters but with colours.

    It may quote a pod or an API server, whose escape sequences could move the cursor. Once the
    reader of a pipe is gone (`| head`), stdout becomes /dev/null, so that the run continues.
    """
    try:
        sys.stdout.write(with_colours(line.rstrip("\n")) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
