"""Bars as inline SVG. They carry no text: what they show stands beside them as numbers.

Meaning never rests on colour alone: what is used is filled, what is promised and idle is an empty
outline, what waits is hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from markupsafe import Markup

from kai_fleet_cli.report.model import StackReport, TeamReport
from kai_fleet_cli.usage.amounts import UNLIMITED
from kai_fleet_cli.usage.queues import ShareUse

LEGEND: Final = {
    "used": "in use",
    "promised": "promised and idle",
    "spare": "promised to nobody",
    "away": "on nodes that are not Ready",
}
# A stretch of a bar: its class in the style sheet, where it begins and ends.
Part: TypeAlias = tuple[str, float, float]
_WIDTH: Final = 1000.0  # of a drawing; the page stretches it
_HEIGHT: Final = 100.0


def fleet(report: StackReport) -> Markup:
    """All GPUs: in use, promised and idle, promised to nobody, on nodes that are not Ready."""
    parts, at = list[Part](), 0.0
    for kind, amount in parts_of(report):
        parts.append((kind, at, at + amount))
        at += amount
    words = ", ".join(f"{amount:g} {LEGEND[kind]}" for kind, amount in parts_of(report) if amount)
    return _bar(parts, at, f"GPUs of the cluster: {words}", "fleet") if parts else Markup("")


def parts_of(report: StackReport) -> list[tuple[str, float]]:
    """What the bar of the fleet shows, and the table behind it: they add up to all GPUs."""
    gpus = report.gpus
    if gpus is None:
        return []
    promised = min(gpus.idle, report.promised_idle)
    amounts = gpus.in_use, promised, gpus.idle - promised, gpus.not_ready
    return [(kind, round(amount, 2)) for kind, amount in zip(LEGEND, amounts, strict=True)]


def team(one: TeamReport, most: float) -> Markup:
    """A team: what it was promised as an outline, what it uses in it, what it waits for behind."""
    used, waiting = one.in_use or 0.0, one.waiting or 0.0
    behind = max(one.promised, used)
    parts = [
        ("promised", 0.0, one.promised),
        ("used", 0.0, used),
        ("waits", behind, behind + waiting),
    ]
    return _bar(parts, most)


def longest(teams: Sequence[TeamReport]) -> float:
    """What the longest bar of some teams shows."""
    return max(
        (max(one.promised, one.in_use or 0.0) + (one.waiting or 0.0) for one in teams), default=0.0
    )


def queue(share: ShareUse, most: float) -> Markup:
    """A queue: its quota as an outline, what it uses of it, what it borrows and waits for."""
    quota = most if share.quota == UNLIMITED else share.quota
    own = min(share.in_use, quota)
    behind = max(quota, share.in_use)
    parts = [
        ("promised", 0.0, quota),
        ("used", 0.0, own),
        ("borrowed", own, share.in_use),
        ("waits", behind, behind + share.waiting),
    ]
    return _bar(parts, most)


def widest(shares: Sequence[ShareUse]) -> float:
    """What the longest bar of some queues shows."""
    return max(
        (max(0.0, share.quota, share.in_use) + share.waiting for share in shares), default=0.0
    )


def _bar(parts: Sequence[Part], most: float, title: str = "", css: str = "") -> Markup:
    """With a title it is an image of its own; else its numbers stand beside it."""
    label = Markup('role="img" aria-label="{}"').format(title)
    rectangles = [
        Markup('<rect class="{}" x="{:.1f}" y="2" width="{:.1f}" height="{:.0f}"/>').format(
            kind, start / most * _WIDTH, (end - start) / most * _WIDTH, _HEIGHT - 4
        )
        for kind, start, end in parts
        if most > 0 and end - start > most / 1e6
    ]
    return Markup(
        '<svg class="bar {}" {} viewBox="-2 0 {:.0f} {:.0f}" preserveAspectRatio="none">{}</svg>'
    ).format(
        css,
        label if title else Markup('aria-hidden="true"'),
        _WIDTH + 4,
        _HEIGHT,
        Markup("").join(rectangles),
    )
