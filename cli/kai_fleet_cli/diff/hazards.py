"""Sentences about a difference, by what has to be known first: what is refused, goes, restarts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Hazard(StrEnum):
    """`refused` stops the update; `lost` does not come back; `restarts` is away for a while."""

    REFUSED = "refused"
    LOST = "lost"
    RESTARTS = "restarts"


HEADINGS: Final[dict[Hazard | None, str]] = {
    Hazard.REFUSED: "The update refuses this",
    Hazard.LOST: "Lost with this",
    Hazard.RESTARTS: "Restarts",
    None: "Changes",
}


@dataclass(frozen=True)
class Part:
    """A part of a sentence about a team or the host, with what it puts at risk."""

    text: str
    hazard: Hazard | None = None


@dataclass(frozen=True)
class Sentence:
    """What happens to one team, or to the host, in parts."""

    subject: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts as one."""
        return "; ".join(part.text for part in self.parts)

    @property
    def hazards(self) -> list[Hazard]:
        """What is at risk, the worst first."""
        own = {part.hazard for part in self.parts}
        return [hazard for hazard in Hazard if hazard in own]

    def record(self) -> dict[str, Any]:
        """For the JSON format."""
        hazards = [hazard.value for hazard in self.hazards]
        return {"subject": self.subject, "text": self.text, "hazards": hazards}

    def __str__(self) -> str:
        """For example `research: GPUs 8 → 10`."""
        return f"{self.subject}: {self.text}"


def by_hazard(sentences: Iterable[Sentence]) -> dict[Hazard | None, list[Sentence]]:
    """The sentences, each in what it says of a hazard; what is harmless last, at None."""
    every = list(sentences)
    groups: dict[Hazard | None, list[Sentence]] = {}
    for hazard in (*Hazard, None):
        parts = ((it, tuple(p for p in it.parts if p.hazard is hazard)) for it in every)
        if group := [Sentence(it.subject, own) for it, own in parts if own]:
            groups[hazard] = group
    return groups
