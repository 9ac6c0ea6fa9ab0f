"""What bars show. They carry no text: their numbers stand beside them.

Meaning never rests on colour alone: what is used is filled, what is promised and idle is an empty
outline, what waits is hatched.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import Final, TypeAlias

from kai_fleet_cli.report.model import StackReport, TeamReport
from kubectl_fleet.usage.amounts import UNLIMITED
from kubectl_fleet.usage.queues import ShareUse

LEGEND: Final = {
    "used": "in use",
    "promised": "promised and idle",
    "spare": "promised to nobody",
    "away": "on nodes that are not Ready",
}
# The stretches of a bar: the class in the style sheet, where it begins and ends.
Bar: TypeAlias = list[tuple[str, float, float]]


def parts_of(report: StackReport) -> list[tuple[str, float]]:
    """What the bar of all GPUs shows, and the table behind it: they add up to all GPUs."""
    gpus = report.gpus
    if gpus is None:
        return []
    promised = min(gpus.idle, report.promised_idle)
    amounts = gpus.in_use, promised, gpus.idle - promised, gpus.not_ready
    return [(kind, round(amount, 2)) for kind, amount in zip(LEGEND, amounts, strict=True)]


def words(report: StackReport) -> str:
    """The bar of all GPUs in words."""
    parts = [f"{amount:g} {LEGEND[kind]}" for kind, amount in parts_of(report) if amount]
    return f"GPUs of the cluster: {', '.join(parts)}"


def fleet(report: StackReport) -> Bar:
    """All GPUs: in use, promised and idle, promised to nobody, on nodes that are not Ready."""
    parts = parts_of(report)
    ends = accumulate(amount for _, amount in parts)
    return [(kind, end - amount, end) for (kind, amount), end in zip(parts, ends, strict=True)]


def team(one: TeamReport) -> Bar:
    """A team: what it was promised as an outline, what it uses in it, what it waits for behind."""
    used, waiting = one.in_use or 0.0, one.waiting or 0.0
    behind = max(one.promised, used)
    return [
        ("promised", 0.0, one.promised),
        ("used", 0.0, used),
        ("waits", behind, behind + waiting),
    ]


def queue(share: ShareUse, most: float = 0.0) -> Bar:
    """A queue: its quota as an outline, what it uses of it, what it borrows and waits for.

    An unlimited quota is as long as the longest bar.
    """
    quota = most if share.quota == UNLIMITED else share.quota
    own = min(share.in_use, quota)
    behind = max(quota, share.in_use)
    return [
        ("promised", 0.0, quota),
        ("used", 0.0, own),
        ("borrowed", own, share.in_use),
        ("waits", behind, behind + share.waiting),
    ]


def longest(bars: Iterable[Bar]) -> float:
    """Where the longest of some bars ends."""
    return max((end for bar in bars for _, _, end in bar), default=0.0)
