"""A queue's share as a bar: what it has of its own, what is borrowed, lent and idle."""

from dataclasses import dataclass
from typing import Final

from rich.text import Text

from kubectl_fleet.declared.queues import UNLIMITED
from kubectl_fleet.usage.queues import ShareUse

WIDTH: Final = 10
_COLOURS: Final = ("green", "yellow", "cyan", "dim")


@dataclass(frozen=True)
class Glyphs:
    """The characters of a bar, of a tree and of an arrow."""

    own: str = "█"
    borrowed: str = "▓"
    lent: str = "▒"
    idle: str = "░"
    middle: str = "├ "
    last: str = "└ "
    past: str = "│ "
    endless: str = "∞"
    arrow: str = "→"

    @property
    def legend(self) -> str:
        """What the characters mean."""
        return (
            f"{self.own} in use, of its own   {self.borrowed} borrowed   {self.lent} lent to others"
            f"   {self.idle} free"
        )


UNICODE: Final = Glyphs()
ASCII: Final = Glyphs("#", "+", "-", ".", "|-", "`-", "| ", "inf", "->")


def bar(share: ShareUse, glyphs: Glyphs) -> Text:
    """The whole bar is the quota, or what is in use where that is more.

    For an unlimited quota it is the limit; without a limit there is no bar.
    """
    whole = share.limit if share.quota == UNLIMITED else share.quota
    if whole == UNLIMITED:
        return Text()
    idle = max(0.0, max(whole, share.in_use) - share.in_use - share.lent)
    return _drawn([share.in_use - share.borrowed, share.borrowed, share.lent, idle], glyphs)


def part(taken: float, glyphs: Glyphs) -> Text:
    """How much of one GPU is taken."""
    return _drawn([min(1.0, taken), 0.0, 0.0, max(0.0, 1.0 - taken)], glyphs)


def _drawn(parts: list[float], glyphs: Glyphs) -> Text:
    """What is a queue's own, borrowed, lent and idle."""
    characters = (glyphs.own, glyphs.borrowed, glyphs.lent, glyphs.idle)
    text = Text()
    for character, colour, count in zip(characters, _COLOURS, _cells(parts), strict=True):
        text.append(character * count, colour)
    return text


def _cells(parts: list[float]) -> list[int]:
    """As many characters as each part has of the whole; one at least for what is there."""
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    cells = [max(1, int(WIDTH * each / whole)) if each > 1e-9 else 0 for each in parts]
    while sum(cells) != WIDTH:
        # What is furthest from its part gives or takes one.
        step = 1 if sum(cells) < WIDTH else -1
        open_ = [at for at in range(len(parts)) if cells[at] > (step < 0)]
        worst = max(open_, key=lambda at: step * (WIDTH * parts[at] / whole - cells[at]))
        cells[worst] += step
    return cells
