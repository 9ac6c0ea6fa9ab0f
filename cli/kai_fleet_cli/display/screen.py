"""Where a command talks, what it asks before something is deleted, and what its flags say."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.prompt import Prompt

from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.text import with_colours, without_controls

Say = Callable[[str], None]


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
        self.out.print(without_controls(text), highlight=False, markup=False, soft_wrap=True)

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
    shown = without_controls(text)
    Console(stderr=True).print(shown, highlight=False, markup=False, soft_wrap=True)


def engine_line(line: str) -> None:
    """A line of the engine's; into nothing once its reader is gone (`| head`). The run goes on.

    It may have words of a pod or an API server in it: colours are all that a terminal is told.
    """
    over = "\033[2K" if sys.stdout.isatty() else ""  # a line that was passing
    try:
        sys.stdout.write(over + with_colours(line.rstrip("\n")) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def passing_line(line: str) -> None:
    """A line of a terminal in place of the last one of these; "" takes that away."""
    room = max(20, os.get_terminal_size(sys.stdout.fileno()).columns - 1)
    sys.stdout.write(f"\r\033[2K{without_controls(line)[:room]}\r")
    sys.stdout.flush()


@dataclass(frozen=True)
class Flags:
    """`yes`: run without a question. `no_up`: write the files only."""

    yes: bool = False
    no_up: bool = False


@contextmanager
def clusters_read() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr while a stack's clusters are read, on a terminal only.

    Yields what takes how many of all have answered.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("reading clusters"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
