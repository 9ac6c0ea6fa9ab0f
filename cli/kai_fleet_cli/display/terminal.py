"""What a command says and asks at the terminal, in lines that no width breaks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from kai_fleet.kube.text import with_colours, without_controls
from kai_fleet_cli.errors import UserError


@dataclass(frozen=True)
class Screen:
    """`out` is for a command's result. `asks`: a person is at a terminal."""

    out: Console
    asks: bool

    @classmethod
    def standard(cls) -> Screen:
        """This process's own."""
        return cls(Console(), sys.stdin.isatty() and sys.stdout.isatty())

    def line(self, text: str) -> None:
        """One line of the result, as it is."""
        print_line(self.out, text)

    def require_answer(self, command: str, loss: str, *, yes: bool) -> None:
        """Refuse before anything is read where nobody can be asked and there is no `--yes`.

        `command` deletes, `loss` says what. Raises UserError with the command to write.
        """
        if not (yes or self.asks):
            raise UserError(
                f"{loss}; there is no terminal to ask at, so write --yes: {command} --yes"
            )

    def confirm_name(self, name: str, verb: str = "remove") -> None:
        """Have a person type the name of what goes. Raises UserError for every other answer."""
        answer = Prompt.ask(f"Type {name} to {verb} it", console=self.out, default="no")
        if answer.strip() != name:
            raise UserError("nothing is changed")


def say(text: str) -> None:
    """One line of progress, on stderr."""
    print_line(Console(stderr=True), text)


def print_line(console: Console, text: str) -> None:
    """Print text as it is, but for control characters."""
    console.print(without_controls(text), highlight=False, markup=False, soft_wrap=True)


def engine_line(line: str) -> None:
    """A line of the engine's; into nothing once its reader is gone (`| head`). The run goes on.

    It may have words of a pod or an API server in it: colours are all that a terminal is told.
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
_AMOUNTS: Final = ("GPUs", "queues", "guaranteed", "not promised")  # headings of numbers


def print_wrapped(console: Console, words: str, lead: Text | str = "", indent: int = 2) -> None:
    """Print words behind a lead. What follows on other lines stands `indent` columns in.

    A file's values are among them, and a terminal would obey them.
    """
    line = Text(without_controls(lead)) if isinstance(lead, str) else lead.copy()
    room = console.width
    begun = bool(line.plain.strip())
    for unit in units(without_controls(words)):
        if begun and line.cell_len + 1 + len(unit) > room:
            console.print(line, soft_wrap=True, highlight=False)
            line, begun = Text(" " * indent), False
        # Commands stand out; their backticks stay, for who copies from a file.
        line.append(f" {unit}" if begun else unit, "bold" if unit.startswith("`") else None)
        begun = True
    console.print(line, soft_wrap=True, highlight=False)


def columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console,
    marked: Collection[int] = (),
) -> None:
    """Rows below headings, amounts to the right; the last cell of a row may take several lines.

    Where the cells do not fit side by side, the first of each row has a line of its own.
    """
    cells = [column[:-1] for column in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    stacked = sum(widths) + 2 * len(widths) > console.width
    amounts = [heading in _AMOUNTS for heading in headings]

    def line(row: Sequence[str], mark: str, style: str) -> None:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row[:-1], widths, amounts, strict=False)
        ]
        if stacked:
            console.print(Text(f"{mark} {row[0]}", style), soft_wrap=True, highlight=False)
            padded[0] = "  "
        lead = f"{' ' if stacked else mark} {'  '.join(padded)}"
        print_wrapped(
            console, row[-1], Text(f"{lead} " if row[-1] else lead.rstrip(), style), indent=6
        )

    console.print()
    line(headings, " ", "dim")
    for number, row in enumerate(rows):
        line(row, *(("!", "yellow") if number in marked else (" ", "")))


def units(words: str) -> list[str]:
    """The words; a command, and a key with its YAML between braces, count as one."""
    return _UNIT.findall(" ".join(words.split()))
