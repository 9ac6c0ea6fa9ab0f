"""The teams of a platform as a table on a terminal; no value of it is cut off."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from kai_fleet_cli.teams.listing.rows import Listing, Row

_GPUS = "GPUs used,\npromised,\nmost"
_HEADINGS = ("team", "stack", "mode", "version", "running", "support ends", "queues", _GPUS)
# On a narrow terminal a team's stack and queues stand on the lines below it.
_NARROW = ("team", "mode", "version", "running", "support ends", "GPUs used/quota/limit")
_ENDLESS = 10_000  # columns


def show(stack: str, found: Listing, console: Console) -> None:
    """Print the table and its notes; what is not known is "-"."""
    if found.rows:
        table = _table(found.rows)
        endless = console.options.update(width=_ENDLESS)
        if Measurement.get(console, endless, table).maximum <= console.width:
            console.print(table)
        else:
            for line in _narrow(found.rows, console.width):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        add = f"fleet team add NAME --stack {stack}"
        console.print(f"Stack {stack} has no team yet; add one: {add}", markup=False)
    for note in found.notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, justify="right" if heading == _GPUS else "left", no_wrap=True)
    for row in rows:
        team, *others, gpus = _cells(row)
        cells = (team, row.stack, *others, ", ".join(row.queues) or "-", gpus)
        table.add_row(*map(escape, cells))
    return table


def _narrow(rows: tuple[Row, ...], width: int) -> Iterator[str]:
    every = [_NARROW, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    apart = sum(widths) + 2 * len(widths) > width  # a long name has a line to itself
    for row, cells in zip((None, *rows), every, strict=True):
        first, *rest = (cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True))
        if apart:
            yield from textwrap.wrap(cells[0], width)
            yield from textwrap.wrap(f"  {'  '.join(rest)}", width, subsequent_indent="    ")
        else:
            yield "  ".join([first, *rest]).rstrip()
        if row is not None:
            queues = f"; queues {', '.join(row.queues)}" if row.queues else ""
            yield from textwrap.wrap(
                f"stack {row.stack}{queues}",
                width,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )


def _cells(row: Row) -> tuple[str, ...]:
    """What is said of a team on its own line, its name first and its GPUs last."""
    return (
        row.team,
        row.mode,
        row.wanted or "-",
        row.running or "-",
        row.support_end or "-",
        "/".join(_amount(value) for value in (row.used, row.guaranteed, row.gpus)),
    )


def _amount(value: float | None) -> str:
    if value is None:
        return "-"
    return "unlimited" if value == -1 else f"{value:g}"
