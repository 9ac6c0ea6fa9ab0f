"""Rows of names and amounts on a screen of any width, with no name broken."""

from collections.abc import Collection, Sequence

from rich.console import Console
from rich.text import Text

from kai_fleet_cli.display.wrapping import told
from kai_fleet_cli.plan.summary import AMOUNTS


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
    amounts = [heading in AMOUNTS for heading in headings]

    def line(row: Sequence[str], mark: str, style: str) -> None:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row[:-1], widths, amounts, strict=False)
        ]
        if stacked:
            console.print(Text(f"{mark} {row[0]}", style), soft_wrap=True, highlight=False)
            padded[0] = "  "
        lead = f"{' ' if stacked else mark} {'  '.join(padded)}"
        told(console, row[-1], Text(f"{lead} " if row[-1] else lead.rstrip(), style), indent=6)

    console.print()
    line(headings, " ", "dim")
    for number, row in enumerate(rows):
        line(row, *(("!", "yellow") if number in marked else (" ", "")))
