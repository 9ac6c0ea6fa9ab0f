"""The teams of a platform as a table on a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleet.teams.listing import Listing, Row

_COLUMNS = ("team", "stack", "mode", "version", "running", "support ends", "queues")
_GPUS = "GPUs used,\npromised,\nmost"


def show(stack: str, found: Listing, console: Console) -> None:
    """Print the table and its notes; what is not known is "-"."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        folds = column in ("stack", "support ends", "queues")
        least = 10 if column == "support ends" else None  # a date stays in one piece
        table.add_column(column, overflow="fold", no_wrap=not folds, min_width=least)
    table.add_column(_GPUS, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            escape(row.team),
            escape(row.stack),
            row.mode,
            row.wanted or "-",
            row.running or "-",
            row.support_end or "-",
            escape(", ".join(row.queues)) or "-",
            _gpus(row),
        )
    if found.rows:
        console.print(table)
    else:
        add = f"fleet team add NAME --stack {stack}"
        console.print(f"Stack {stack} has no team yet; add one: {add}", markup=False)
    for note in found.notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)


def _gpus(row: Row) -> str:
    return "/".join(_amount(value) for value in (row.used, row.guaranteed, row.gpus))


def _amount(value: float | None) -> str:
    if value is None:
        return "-"
    return "unlimited" if value == -1 else f"{value:g}"
