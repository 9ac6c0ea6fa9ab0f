"""How many of a stack's clusters have answered, on a terminal's stderr while they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


@contextmanager
def clusters_read() -> Iterator[Callable[[int, int], None]]:
    """Yields who is to be told how many of all have answered. It goes when they have."""
    columns = TextColumn("reading clusters"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
