"""`fleet usage`: from a stack's Prometheus where it names one, else a sample of its clusters.

As tables on a terminal, and as CSV for who counts it elsewhere.
"""

import csv
import io
from dataclasses import replace
from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet.settings.sections.monitoring import Prometheus
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.gather import ClusterSources, Heard, gather, no_progress
from kai_fleet_cli.doctor.sources import of_stack, settings_of
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.over_time import Window, gpu_hours
from kai_fleet_cli.report.team_usage import (
    AMOUNTS,
    GpuBalance,
    StackUsage,
    balance,
    never_now,
    teams_now,
    waits_now,
)
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.errors import UnreachableError
from kubectl_fleet.wording import counted

# What is asked of each API server; the addresses of vClusters are those of Services.
KINDS: Final = frozenset({"nodes", "pods", "queues", "podgroups", "deployments", "services"})
_SAMPLE: Final = (
    "This is a sample of now, not GPU-hours: the stack names no Prometheus. For those,"
    f" {prometheus.TURN_ON}"
)
_BESIDE: Final = "(no queue)"
_LEGEND: Final = (
    "idle: guaranteed, and not used by the queue itself; owed: asked for, guaranteed and not had"
)


def usage_of(
    stack: str,
    team: str | None = None,
    since: str = "7d",
    *,
    sample: bool = False,
    url: str | None = None,
    heard: Heard = no_progress,
) -> StackUsage:
    """Who used how many GPUs of a stack.

    `sample`: now, also where there is a Prometheus. `url`: another Prometheus than the stack's.
    `heard` is called with how many of all clusters have answered. Raises UserError for a wrong
    argument, and where the host or Prometheus does not answer.
    """
    settings, window = settings_of(stack), Window.of(since)
    sources = replace(of_stack(stack, team, None), kinds=KINDS, heard=heard)
    of_settings = settings.monitoring.prometheus if settings.monitoring else None
    server = Prometheus(url=url) if url else of_settings
    if sample or server is None:
        look = _look(sources)
        notes = [*([] if sample else [_SAMPLE]), *never_now(look)]
        return StackUsage(
            stack, teams_now(look), waits_now(look), notes=notes, foreign=look.foreign
        )
    names = [team] if team else [*settings.teams, *settings.team_stacks]
    try:
        period = gpu_hours(prometheus.of(server, sources.host), settings, names, window)
    except UnreachableError as error:
        raise UserError(f"{error}. For a sample of now: --now") from None
    part = f"{period.measured:.1f} of the {window.hours:g} hours that were asked for"
    notes = [] if window.covered_by(period.measured) else [f"Prometheus has numbers of {part}."]
    usage = StackUsage(stack, period.rows, since=since, measured=period.measured)
    try:
        look = _look(sources)
    except UserError as error:
        return replace(usage, notes=[*notes, f"Who waits now is not known: {error}"])
    notes += never_now(look)
    return replace(usage, waits=waits_now(look), notes=notes, foreign=look.foreign)


def _look(sources: ClusterSources) -> Snapshot:
    """The host, and the vClusters with a KAI of their own: the pods of others are seen there."""
    every = sources.teams or {}
    own = {name: it for name, it in every.items() if it.mode == "virtual" and not it.granted}
    try:
        look = gather(replace(sources, teams=own))
    except UnreachableError as error:
        raise UserError(
            f"the host cluster is not reached: {error}; look with: {sources.host_kubectl} version"
        ) from None
    return Snapshot(look.host, {n: look.teams.get(n) or TeamState(it) for n, it in every.items()})


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
