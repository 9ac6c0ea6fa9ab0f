"""Bars as inline SVG. They carry no text: what they show stands beside them as numbers.

Meaning never rests on colour alone: what is used is filled, what is promised and idle is an empty
outline, what waits is hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED
from kai_fleet_cli.gpu_usage.queues import Share
from kai_fleet_cli.report.model import Report, TeamReport

LEGEND: Final = {
    "used": "in use",
    "promised": "promised and idle",
    "spare": "promised to nobody",
    "away": "on nodes that are not Ready",
}
_WIDTH: Final = 1000.0  # of a drawing; the page stretches it
_HEIGHT: Final = 100.0


@dataclass(frozen=True)
class Part:
    """A stretch of a bar: its class in the style sheet, where it begins and ends."""

    kind: str
    start: float
    end: float


def fleet(report: Report) -> Markup:
    """All GPUs: in use, promised and idle, promised to nobody, on nodes that are not Ready."""
    gpus = report.gpus
    if gpus is None:
        return Markup("")
    parts, at = [], 0.0
    for kind, amount in parts_of(report):
        parts.append(Part(kind, at, at + amount))
        at += amount
    words = ", ".join(f"{amount:g} {LEGEND[kind]}" for kind, amount in parts_of(report) if amount)
    return _drawn(parts, at, f"GPUs of the cluster: {words}", css="fleet")


def parts_of(report: Report) -> list[tuple[str, float]]:
    """What the bar of the fleet shows, and the table behind it: they add up to all GPUs."""
    gpus = report.gpus
    if gpus is None:
        return []
    idle = gpus.idle
    promised = min(idle, report.promised_idle)
    return [
        ("used", _short(gpus.in_use)),
        ("promised", _short(promised)),
        ("spare", _short(idle - promised)),
        ("away", _short(gpus.not_ready)),
    ]


def team(one: TeamReport, most: float) -> Markup:
    """A team: what it was promised as an outline, what it uses in it, what it waits for behind."""
    used, waiting = one.in_use or 0.0, one.waiting or 0.0
    behind = max(one.promised, used)
    return _drawn(
        [
            Part("promised", 0.0, one.promised),
            Part("used", 0.0, used),
            Part("waits", behind, behind + waiting),
        ],
        most,
    )


def longest(teams: Sequence[TeamReport]) -> float:
    """What the longest bar of some teams shows."""
    return max(
        (max(one.promised, one.in_use or 0.0) + (one.waiting or 0.0) for one in teams), default=0.0
    )


def queue(share: Share, most: float) -> Markup:
    """A queue: its quota as an outline, what it uses of it, what it borrows and waits for."""
    quota = most if share.quota == UNLIMITED else share.quota
    own = min(share.in_use, quota)
    behind = max(quota, share.in_use)
    return _drawn(
        [
            Part("promised", 0.0, quota),
            Part("used", 0.0, own),
            Part("borrowed", own, share.in_use),
            Part("waits", behind, behind + share.waiting),
        ],
        most,
    )


def widest(shares: Sequence[Share]) -> float:
    """What the longest bar of some queues shows."""
    return max(
        (max(0.0, share.quota, share.in_use) + share.waiting for share in shares), default=0.0
    )


def _drawn(parts: Sequence[Part], most: float, title: str = "", css: str = "") -> Markup:
    """With a title it is an image of its own; else its numbers stand beside it."""
    said = (
        Markup('role="img" aria-label="{}"').format(escape(title))
        if title
        else Markup('aria-hidden="true"')
    )
    drawn = [
        Markup('<rect class="{}" x="{:.1f}" y="2" width="{:.1f}" height="{:.0f}"/>').format(
            part.kind,
            part.start / most * _WIDTH,
            (part.end - part.start) / most * _WIDTH,
            _HEIGHT - 4,
        )
        for part in parts
        if most > 0 and part.end - part.start > most / 1e6
    ]
    return Markup(
        '<svg class="bar {}" {} viewBox="-2 0 {:.0f} {:.0f}" preserveAspectRatio="none">{}</svg>'
    ).format(css, said, _WIDTH + 4, _HEIGHT, Markup("").join(drawn))


def _short(amount: float) -> float:
    return round(amount, 2)
