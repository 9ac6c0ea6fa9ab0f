"""A report as tables of text: for a terminal, for Markdown, and in part for the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rich import box
from rich.markup import escape
from rich.table import Table

from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.kube.text import plain
from kai_fleet_cli.report.model import PeriodUse, StackReport, UseOverTime, UseRow
from kai_fleet_cli.waiting.finding import Health

UNKNOWN: Final = "\u2013"  # a dash
_PERIODS: Final = {"7d": "7 days", "30d": "30 days"}
_UNMEASURED: Final = PeriodUse(None)


@dataclass(frozen=True)
class Section:
    """A table, and sentences about it. The first `words` columns are words, the others numbers."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    sentences: Sequence[str] = ()


def table(section: Section) -> Table:
    """A section for a terminal: words fold, and a number stays on its line."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=section.title, title_justify="left")
    for heading, *cells in zip(section.headings, *section.rows, strict=True):
        if len(drawn.columns) < section.words:
            drawn.add_column(heading, overflow="fold")
        else:
            widest = max(map(len, cells), default=0)
            drawn.add_column(heading, justify="right", min_width=widest)
    for row in section.rows:
        drawn.add_row(*(escape(plain(cell)) for cell in row))
    return drawn


def sections(report: StackReport) -> Iterator[Section]:
    """The whole report, but for the queue trees: those are on the page and in the JSON."""
    if report.over_time is not None:
        yield hours(report.over_time)
        yield idle(report.over_time)
    now = ["in use", "idle", "waiting"] if report.live else []
    rows = [
        [
            team.name,
            team.scheduled_by,
            gpus(team.promised),
            *map(gpus, (team.in_use, team.idle, team.waiting)[: len(now)]),
        ]
        for team in sorted(report.teams, key=lambda team: -team.promised)
    ]
    yield Section("Teams", ["team", "scheduled by", "promised", *now], rows, 2)
    if report.live:
        rows = [
            [
                wait.team,
                ", ".join(wait.queues),
                wait.cause or "on its way",
                str(wait.pods),
                gpus(wait.gpus),
                age(report.made - wait.since) if wait.since else "",
            ]
            for wait in report.waits
        ]
        headings = ["team", "queues", "why", "pods", "GPUs", "longest"]
        yield Section("Who waits", headings, rows, 3)
        rows = [
            [
                pool.labels or "no labels of a pool",
                ", ".join(pool.teams),
                ", ".join(pool.products),
                UNKNOWN if pool.nodes is None else f"{pool.ready} of {pool.nodes}",
                *map(gpus, (of.ready, of.in_use, of.free) if (of := pool.gpus) else [None] * 3),
            ]
            for pool in report.pools
        ]
        headings = ["nodes with", "teams", "GPU", "Ready nodes", "GPUs", "in use", "free devices"]
        yield Section("Node pools", headings, rows, 3)
    rows = [
        [
            team.name,
            team.kai.name if team.kai else "none",
            team.kai.support if team.kai else "",
            team.vcluster.name if team.vcluster else "none",
        ]
        for team in report.teams
        if not team.own_stack
    ]
    yield Section("Versions and support", ["team", "KAI", "support", "vCluster"], rows, 4)
    rows = [
        [
            each.health if report.live or each.health is Health.WARNING else "refused",
            each.cluster,
            each.subject,
            each.cause,
            each.fix,
        ]
        for each in sorted(report.findings, key=lambda each: each.health)
    ]
    title = "Health" if report.live else "What the rules say"
    yield Section(title, ["how bad", "where", "what", "why", "what to do"], rows, 5)
    rows = [
        [
            f"{update.when:%Y-%m-%d %H:%M}",
            "; ".join(update.changes) or UNKNOWN,
            f"{update.kind} {update.result}",
            update.resources or "none changed",
            update.checkout or UNKNOWN,
        ]
        for update in report.updates or ()
    ]
    headings = ["when, UTC", "what", "result", "resources", "run from commit"]
    yield Section("Last changes", headings, rows, 5, [changes_from(report)])


def summary(report: StackReport) -> Iterator[str]:
    """The first lines: what it is about, and the figures."""
    seen = "as seen" if report.live else "as declared"
    yield f"Cluster {report.cluster}, {seen} on {report.made:%Y-%m-%d %H:%M} UTC."
    figures = [f"{gpus(report.promised)} GPUs promised"]
    if report.gpus is not None:
        figures += [f"{gpus(report.gpus.in_use)} in use", f"{gpus(report.gpus.idle)} idle"]
    if report.live:
        of = ", of those that were read" if report.unread else ""
        figures.append(f"{gpus(report.waiting)} waited for by {report.waiting_pods} pods{of}")
    yield f"{', '.join(figures)}."
    for part, why in report.missing.items():
        yield f"Not in it: {part}: {why}."
    if report.more:
        yield report.more


def hours(use: UseOverTime) -> Section:
    """GPU-hours by team and queue, with their trend and cost."""
    rows: list[list[str]] = []
    for row in use.teams:
        rows.append([row.name, row.queue, *_numbers(use, row)])
    if sum(not row.queue for row in use.teams) > 1:
        rows.append(["all teams", "", *_numbers(use, UseRow("", "", use.total))])
    sentences = [
        "A GPU-hour is a GPU that a pod held for an hour: allocated, not used, so a pod that"
        " computes nothing counts in full. Half a GPU for an hour is half a GPU-hour, and a pod"
        " that waits counts nothing.",
        f"The trend is the change since as many days before; {UNKNOWN} is where one of the two was"
        " not measured in full.",
    ]
    if use.currency:
        sentences.append(
            "The cost is GPU-hours at the price of the GPU's model (kai-fleet:prices), a queue's at"
            " its team's average. A team pays for what it held, not for what it was promised. CPU,"
            " memory, storage and network are not in it."
        )
    about = f" and their cost in {use.currency}" if use.currency else ""
    headings = ["team", "queue", *_headings(use, ("GPU-hours", "trend"))]
    return Section(f"GPU-hours{about}", headings, rows, 2, [*sentences, *use.notes])


def idle(use: UseOverTime) -> Section:
    """What stood idle, by pool."""
    rows = [[row.name, *_numbers(use, row, trend=False)] for row in use.idle]
    sentences = [
        "Whole GPUs that no pod held, those of nodes that are not Ready among them: what a pool"
        " costs while it stands idle, and what no team pays for. The free part of a shared GPU is"
        " in neither table."
    ]
    return Section("Idle GPU-hours", ["nodes", *_headings(use, ("idle",))], rows, 1, sentences)


def _headings(use: UseOverTime, names: Sequence[str]) -> list[str]:
    every = [*names, use.currency] if use.currency else names
    return [f"{name}, {_PERIODS[since]}" for since in use.periods for name in every]


def _numbers(use: UseOverTime, row: UseRow, *, trend: bool = True) -> Iterator[str]:
    for since in use.periods:
        of = row.periods.get(since, _UNMEASURED)
        yield UNKNOWN if of.gpu_hours is None else f"{of.gpu_hours:,.1f}"
        if trend:
            yield trend_text(of.trend)
        if use.currency:
            yield UNKNOWN if of.cost is None else f"{of.cost:,.2f}"


def trend_text(percent: float | None) -> str:
    """`↑ 12%`, `↓ 5%`, `→ 0%`; `↑ from 0` where there was nothing before."""
    if percent is None:
        return UNKNOWN
    if math.isinf(percent):
        return "↑ from 0"
    rounded = round(percent)
    return f"{'↑' if rounded > 0 else '↓' if rounded < 0 else '→'} {abs(rounded):,}%"


def changes_from(report: StackReport) -> str:
    """Where the last changes are from."""
    if report.updates is None:
        return "The stack's history was not read."
    if not report.updates:
        return "None: the stack was never deployed."
    return (
        "From `pulumi stack history`, newest first, with the versions that each changed by the"
        " configuration that Pulumi kept. It keeps the commit that an update was run from, and not"
        " who ran it."
    )


def gpus(amount: float | None) -> str:
    """An amount of GPUs: no more than two decimals, `unlimited`, a dash for not known."""
    if amount is None:
        return UNKNOWN
    if amount == UNLIMITED:
        return "unlimited"
    return f"{round(amount, 2):,g}" if amount < 10**6 else f"{amount:,.0f}"


def age(since: timedelta) -> str:
    """How long something takes already, in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    if not minutes:
        return "< 1 min"
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
