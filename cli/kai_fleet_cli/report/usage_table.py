"""`fleet usage` on a terminal, and as CSV for who counts it elsewhere."""

import csv
import io
from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet_cli.report.team_usage import AMOUNTS, GpuBalance, StackUsage, balance
from kubectl_fleet.wording import counted

_BESIDE: Final = "(no queue)"
_LEGEND: Final = (
    "idle: guaranteed, and not used by the queue itself; owed: asked for, guaranteed and not had"
)


def show(usage: StackUsage, console: Console) -> None:
    """Print who used what."""

    def line(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    for note in usage.notes:
        line(note)
    console.print(_teams(usage))
    for team in usage.teams:
        if team.unreached:
            line(f"Team {team.team} is not counted: {team.unreached}.", "yellow")
    line(_LEGEND, "dim")
    if usage.waits:
        console.print(_waits(usage))


def as_csv(usage: StackUsage) -> str:
    """One line for each queue; `queue` is empty for what pods have beside the queues."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["team", "mode", "promised", "queue", *AMOUNTS, "unit", "since"])
    for team in usage.teams:
        for queue, gpus in team.queues.items():
            numbers = [f"{number:g}" for number in gpus.record().values()]
            about = [team.team, team.mode, team.promised, queue or ""]
            writer.writerow([*about, *numbers, usage.unit, usage.since or "now"])
    return out.getvalue()


def _teams(usage: StackUsage) -> Table:
    over = f", the last {usage.since}" if usage.since else ", now"
    table = _titled(f"{usage.unit}{over}")
    for name in ("team", "queue"):
        table.add_column(name, no_wrap=True)
    for name in AMOUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    for team in usage.teams:
        if team.unreached:
            continue
        about = f"[dim]{team.mode}, {counted(team.promised, 'GPU')}[/]"
        table.add_row(f"[bold]{escape(team.team)}[/]", about, *_numbers(team.gpus, "bold"))
        if set(team.queues) != {None}:
            for queue, gpus in team.queues.items():
                table.add_row("", f"  {escape(queue or _BESIDE)}", *_numbers(gpus))
    if len(usage.teams) > 1:
        table.add_section()
        every = balance(team.gpus for team in usage.teams)
        table.add_row("[bold]all[/]", "", *_numbers(every, "bold"))
    return table


def _titled(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")


def _numbers(gpus: GpuBalance, style: str = "") -> list[str]:
    texts = [f"{number:,.1f}".removesuffix(".0") for number in gpus.record().values()]
    return [f"[{style}]{text}[/]" if style else text for text in texts]


def _waits(usage: StackUsage) -> Table:
    table = _titled("Longest waits for GPUs, now")
    for name in ("team", "pod", "queue"):
        table.add_column(name, overflow="fold")
    for name in ("GPUs", "waits"):
        table.add_column(name, justify="right", no_wrap=True)
    for wait in usage.waits:
        names = (escape(text) for text in (wait.team, wait.pod, wait.queue or _BESIDE))
        table.add_row(*names, f"{wait.gpus:g}", spelled(wait.seconds))
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
