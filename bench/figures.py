"""Figures side by side, as the table of docs/benchmarks.md."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One line: seconds by the program and by hand, and the ratio that is wanted at most.

    `by_hand` is None where nothing does the same; `mib` is the program's memory at its most.
    """

    what: str
    program: float
    by_hand: float | None = None
    wanted: float | None = None
    mib: float | None = None

    @property
    def ratio(self) -> float | None:
        """The program's time as a multiple of the other's."""
        return None if not self.by_hand else self.program / self.by_hand

    @property
    def held(self) -> bool | None:
        """Whether what was wanted was reached; None where nothing was."""
        if self.wanted is None or self.ratio is None:
            return None
        return self.ratio <= self.wanted

    def row(self) -> str:
        """As a line of a Markdown table."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        wanted = "" if self.wanted is None else f"≤ {self.wanted:.3g}"
        verdict = {True: "yes", False: "**no**", None: ""}[self.held]
        hand = "" if self.by_hand is None else f"{self.by_hand:.1f}"
        mib = "" if self.mib is None else f"{self.mib:.0f}"
        cells = (self.what, f"{self.program:.1f}", hand, ratio, wanted, verdict, mib)
        return f"| {' | '.join(cells)} |"


@dataclass
class Table:
    """The figures of one comparison, and what was found out beside them."""

    title: str
    against: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """A section with its table."""
        head = [
            f"## {self.title}",
            "",
            f"| | program, s | {self.against}, s | ratio | wanted | held | MiB |",
            "|---|---:|---:|---:|---:|---|---:|",
        ]
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([*head, *(figure.row() for figure in self.figures), *notes, ""])


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """The k of `time ~ size^k` that fits best, by least squares over logarithms; 1 is linear."""
    logs: Sequence[tuple[float, float]] = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
