"""Usage on a terminal, and as CSV for who counts it elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet_cli.usage.rows import AMOUNTS, Shares, Used, Wait, total

_BESIDE: Final = "(no queue)"
_LEGEND: Final = (
    "idle: guaranteed, and not used by the queue itself; owed: asked for, guaranteed and not had"
)


def show(used: Used, console: Console) -> None:
    """Print who used what."""
    for note in used.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    console.print(_table(used))
    for team in used.teams:
        if team.unreached:
            text = f"Team {team.team} is not counted: {team.unreached}."
            console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)
    console.print(_LEGEND, style="dim", markup=False, highlight=False, soft_wrap=True)
    if used.waits:
        console.print(_waits(used.waits))


def as_csv(used: Used) -> str:
    """One line for each queue; `queue` is empty for what pods have beside the queues."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["team", "mode", "promised", "queue", *AMOUNTS, "unit", "since"])
    for team in used.teams:
        for row in team.queues:
            numbers = [f"{number:g}" for number in row.shares.record().values()]
            about = [team.team, team.mode, team.promised, row.queue or ""]
            writer.writerow([*about, *numbers, used.unit, used.since or "now"])
    return out.getvalue()


def _table(used: Used) -> Table:
    over = f", the last {used.since}" if used.since else ", now"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{used.unit}{over}")
    table.title_justify = "left"
    for name in ("team", "queue"):
        table.add_column(name, no_wrap=True)
    for name in AMOUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    for team in used.teams:
        if team.unreached:
            continue
        about = f"[dim]{team.mode}, {team.promised:g} GPUs[/]"
        table.add_row(f"[bold]{escape(team.team)}[/]", about, *_numbers(team.shares, "bold"))
        if [row.queue for row in team.queues] != [None]:
            for row in team.queues:
                table.add_row("", f"  {escape(row.queue or _BESIDE)}", *_numbers(row.shares))
    if len(used.teams) > 1:
        table.add_section()
        every = total(it.shares for it in used.teams)
        table.add_row("[bold]all[/]", "", *_numbers(every, "bold"))
    return table


def _numbers(shares: Shares, style: str = "") -> list[str]:
    texts = [f"{number:,.1f}".removesuffix(".0") for number in shares.record().values()]
    return [f"[{style}]{text}[/]" if style else text for text in texts]


def _waits(waits: Sequence[Wait]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Longest waits for GPUs, now")
    table.title_justify = "left"
    for name in ("team", "pod", "queue"):
        table.add_column(name, overflow="fold")
    for name in ("GPUs", "waits"):
        table.add_column(name, justify="right", no_wrap=True)
    for wait in waits:
        table.add_row(
            escape(wait.team),
            escape(wait.pod),
            escape(wait.queue or _BESIDE),
            f"{wait.gpus:g}",
            spelled(wait.seconds),
        )
    return table


def spelled(seconds: float) -> str:
    """`95.0` → `1m35s`, `90000` → `25h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours}h"
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
