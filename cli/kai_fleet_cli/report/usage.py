"""`fleet usage`: from a stack's Prometheus where it names one, else a sample of its clusters.

As tables on a terminal, and as CSV for who counts it elsewhere.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, Final, Literal

from pydantic import ValidationError
from rich.console import Console

from kai_fleet.fleet.amounts import rounded
from kai_fleet.kube.errors import UnreachableError
from kai_fleet.settings.sections.monitoring import Prometheus
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.gather import ClusterSources, Heard, gather, no_progress
from kai_fleet_cli.doctor.sources import of_stack, settings_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.over_time import Window, gpu_hours
from kai_fleet_cli.report.sections import Section, age, table
from kai_fleet_cli.report.team_usage import (
    AMOUNTS,
    GpuBalance,
    PodWait,
    TeamUsageRow,
    balance,
    teams_now,
    waits_now,
)

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


@dataclass(frozen=True)
class StackUsage:
    """What `fleet usage` shows. `since` is how far back Prometheus was asked, None for a sample.

    `measured` are the hours of which Prometheus has numbers.
    `foreign` are sentences about teams whose way in somebody else than their vCluster wrote.
    """

    stack: str
    teams: Sequence[TeamUsageRow]
    waits: Sequence[PodWait] = ()
    since: str | None = None
    measured: float = 0.0
    notes: Sequence[str] = ()
    foreign: Sequence[str] = ()

    @property
    def unit(self) -> Literal["GPUs", "GPU-hours"]:
        """What the numbers count."""
        return "GPUs" if self.since is None else "GPU-hours"

    def record(self) -> dict[str, Any]:
        """The JSON: its keys do not change between releases."""
        return {
            "stack": self.stack,
            "source": "now" if self.since is None else "prometheus",
            "unit": self.unit,
            "since": self.since,
            "measuredHours": None if self.since is None else rounded(self.measured),
            "teams": [
                {
                    "team": team.team,
                    "mode": team.mode,
                    "promised": team.promised,
                    "unreached": team.unreached or None,
                    **team.gpus.record(),
                    "queues": [
                        {"queue": queue, **gpus.record()} for queue, gpus in team.queues.items()
                    ],
                }
                for team in self.teams
            ],
            "waits": [{**asdict(wait), "seconds": round(wait.seconds)} for wait in self.waits],
            "notes": list(self.notes),
        }


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
    try:
        server = Prometheus(url=url) if url else of_settings
    except ValidationError as error:
        raise UserError(f"--prometheus: {error.errors()[0]['ctx']['error']}") from None
    if sample or server is None:
        look = _look(sources)
        usage = StackUsage(stack, teams_now(look), notes=() if sample else [_SAMPLE])
    else:
        names = [team] if team else [*settings.teams, *settings.team_stacks]
        try:
            period = gpu_hours(prometheus.of(server, sources.host), settings, names, window)
        except UnreachableError as error:
            raise UserError(f"{error}. For a sample of now: --now") from None
        part = f"{period.measured:.1f} of the {window.hours:g} hours that were asked for"
        notes = [] if window.covered_by(period.measured) else [f"Prometheus has numbers of {part}."]
        usage = StackUsage(stack, period.rows, (), since, period.measured, notes)
        try:
            look = _look(sources)
        except UserError as error:
            return replace(usage, notes=[*notes, f"Who waits now is not known: {error}"])
    waits, never = waits_now(look)
    return replace(usage, waits=waits, notes=[*usage.notes, *never], foreign=look.foreign)


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
    console.print(table(_teams(usage)))
    for team in usage.teams:
        if team.unreached:
            line(f"Team {team.team} is not counted: {team.unreached}.", "yellow")
    line(_LEGEND, "dim")
    if usage.waits:
        console.print(table(_waits(usage)))


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


def _teams(usage: StackUsage) -> Section:
    rows = []
    for team in usage.teams:
        if team.unreached:
            continue
        about = f"{team.mode}, {counted(team.promised, 'GPU')}"
        rows.append([team.team, about, *_numbers(team.gpus)])
        if set(team.queues) != {None}:
            rows += [["", q or _BESIDE, *_numbers(it)] for q, it in team.queues.items()]
    if len(usage.teams) > 1:
        rows.append(["all", "", *_numbers(balance(team.gpus for team in usage.teams))])
    over = f"the last {usage.since}" if usage.since else "now"
    return Section(f"{usage.unit}, {over}", ["team", "queue", *AMOUNTS], rows, 2)


def _numbers(gpus: GpuBalance) -> list[str]:
    return [f"{number:,.1f}".removesuffix(".0") for number in gpus.record().values()]


def _waits(usage: StackUsage) -> Section:
    rows = [
        [it.team, it.pod, it.queue or _BESIDE, f"{it.gpus:g}", age(timedelta(seconds=it.seconds))]
        for it in usage.waits
    ]
    headings = ["team", "pod", "queue", "GPUs", "waits"]
    return Section("Longest waits for GPUs, now", headings, rows, 3)
