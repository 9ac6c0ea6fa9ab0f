"""A queue's share as a bar: what it has of its own, what is borrowed, lent and idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.text import Text

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED
from kai_fleet_cli.gpu_usage.queues import Share

WIDTH: Final = 10


@dataclass(frozen=True)
class Ink:
    """The characters of a bar and of a tree."""

    own: str = "█"
    borrowed: str = "▓"
    lent: str = "▒"
    idle: str = "░"
    middle: str = "├ "
    last: str = "└ "
    past: str = "│ "
    endless: str = "∞"

    @property
    def legend(self) -> str:
        """What the characters mean."""
        return (
            f"{self.own} in use, of its own   {self.borrowed} borrowed   {self.lent} lent to others"
            f"   {self.idle} free"
        )


INK: Final = Ink()
ASCII: Final = Ink("#", "+", "-", ".", "|-", "`-", "| ", "inf")
_STYLES: Final = {"own": "green", "borrowed": "yellow", "lent": "cyan", "idle": "dim"}


def bar(share: Share, ink: Ink, width: int = WIDTH) -> Text:
    """The whole bar is the quota, or what is in use where that is more.

    For an unlimited quota it is the limit; without a limit there is no bar.
    """
    whole = share.limit if share.quota == UNLIMITED else share.quota
    if whole == UNLIMITED:
        return Text()
    whole = max(whole, share.in_use)
    own = share.in_use - share.borrowed
    idle = max(0.0, whole - share.in_use - share.lent)
    parts = {"own": own, "borrowed": share.borrowed, "lent": share.lent, "idle": idle}
    cells = _cells(list(parts.values()), width)
    text = Text()
    for (name, style), count in zip(_STYLES.items(), cells, strict=True):
        text.append(getattr(ink, name) * count, style)
    return text


def part(taken: float, ink: Ink, width: int = WIDTH) -> Text:
    """How much of one GPU is taken."""
    own, idle = _cells([min(1.0, taken), max(0.0, 1.0 - taken)], width)
    return Text.assemble((ink.own * own, _STYLES["own"]), (ink.idle * idle, _STYLES["idle"]))


def _cells(parts: list[float], width: int) -> list[int]:
    """As many characters as each part has of the whole; one at least for what is there."""
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    cells = [max(1, int(width * each / whole)) if each > 1e-9 else 0 for each in parts]
    while sum(cells) != width:
        # What is furthest from its part gives or takes one.
        step = 1 if sum(cells) < width else -1
        open_ = [at for at in range(len(parts)) if cells[at] > (step < 0)]
        worst = max(open_, key=lambda at: step * (width * parts[at] / whole - cells[at]))
        cells[worst] += step
    return cells
