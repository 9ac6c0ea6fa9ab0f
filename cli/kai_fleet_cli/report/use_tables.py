"""GPU-hours, their trend and cost, and idle GPUs, as tables of text: the same in every form."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kai_fleet_cli.report.model import PeriodUse, StackReport, UseOverTime, UseRow

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
