"""Print and ask at the terminal; commands in the text are never broken across lines."""

import os
import re
import sys
from collections.abc import Container, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.prompt import Prompt
from rich.table import Table
from rich.text import Text

from kai_fleet.wording import with_colours, without_controls
from kai_fleet_cli.errors import UserError


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


def asks() -> bool:
    """Whether a person is at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def require_answer(command: str, loss: str, *, yes: bool) -> None:
    """Refuse before anything is read where nobody can be asked and there is no `--yes`.

    `command` deletes, `loss` says what. Raises UserError with the command to write.
    """
    if not (yes or asks()):
        raise UserError(f"{loss}; there is no terminal to ask at, so write --yes: {command} --yes")


def confirm_name(name: str) -> None:
    """Ask for the name of what is to be removed. Raises UserError for every other answer."""
    if Prompt.ask(f"Type {name} to remove it", default="no").strip() != name:
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


# What is to be copied in one piece: code in backticks, a key with its YAML, a command up to the
# end of its clause. The names of these tools are subjects of sentences, too: so with their verbs.
_COMMAND: Final = (
    r"(?:(?:\.venv/bin/)?fleet|kubectl|make (?:up|preview|down|setup)"
    r"|helm (?:get|history|list|rollback|status|uninstall)"
    r"|pulumi (?:cancel|config|destroy|import|login|plugin|preview|refresh|stack|state|up))"
)
_NEXT_WORD: Final = r"(?<![,;.:)]) (?!(?:or|and|then|in|for|there|where)(?!\S))\S+"
_UNIT: Final = re.compile(
    r"\(?`[^`]*`\S*"
    r"|(?:kai-fleet:\S+: )?(?:\{(?:[^{}]|\{[^{}]*\}){0,300}\}|\[[^\[\]]{0,300}\])\S*"
    rf"|\(?{_COMMAND}(?:{_NEXT_WORD})*(?!\S)"
    r"|\S+"
)
_NUMBER: Final = re.compile(r"[\d.,]+|unlimited|[-\u2013]")


def print_wrapped(console: Console, words: str, lead: Text | str = "", indent: int = 2) -> None:
    """Print words behind a lead. What follows on other lines stands `indent` columns in.

    They may quote a file's values, so control characters are left out.
    """
    line = Text(without_controls(lead)) if isinstance(lead, str) else lead.copy()
    width = console.width
    begun = bool(line.plain.strip())
    for unit in units(without_controls(words)):
        if begun and line.cell_len + 1 + len(unit) > width:
            console.print(line, soft_wrap=True, highlight=False)
            line, begun = Text(" " * indent), False
        # Commands are bold; their backticks stay for output in files.
        line.append(f" {unit}" if begun else unit, "bold" if unit.startswith("`") else None)
        begun = True
    console.print(line, soft_wrap=True, highlight=False)


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    marked: Container[int] = (),
) -> None:
    """Print rows below headings, numbers to the right.

    The last cell of a row may take several lines. No name is broken: a table may be wider than
    the console.
    """
    columns = [*zip(headings, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns[:-1]]
    widths.append(max(len(word) for cell in columns[-1] for word in (*cell.split(), "")))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        numbers = len(column) > 1 and all(map(_NUMBER.fullmatch, column[1:]))
        table.add_column(column[0], min_width=width, justify="right" if numbers else "left")
    for number, row in enumerate(rows):
        style = "yellow" if number in marked else None
        table.add_row(*(Text(without_controls(cell)) for cell in row), style=style)
    least = sum(widths) + 2 * len(widths)
    console.print(table, width=max(console.width, least), crop=False)


def units(words: str) -> list[str]:
    """The words; a command, and a key with its YAML between braces, count as one."""
    return _UNIT.findall(" ".join(words.split()))
