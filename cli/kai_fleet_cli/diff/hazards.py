"""Sentences about a difference, by what has to be known first: what is refused, goes, restarts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple


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


class Part(NamedTuple):
    """A part of a sentence about a team or the host, with what it puts at risk."""

    text: str
    hazard: Hazard | None = None


@dataclass(frozen=True)
class Sentence:
    """What happens to one team, or to the host, in parts: `research`, `GPUs 8 → 10`."""

    subject: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts as one."""
        return "; ".join(part.text for part in self.parts)

    def record(self) -> dict[str, Any]:
        """For the JSON format; what is at risk, the worst first."""
        own = {part.hazard for part in self.parts}
        hazards = [hazard.value for hazard in Hazard if hazard in own]
        return {"subject": self.subject, "text": self.text, "hazards": hazards}


def by_hazard(sentences: Iterable[Sentence]) -> dict[Hazard | None, list[Sentence]]:
    """The sentences, each in what it says of a hazard; what is harmless last, at None."""
    groups: dict[Hazard | None, list[Sentence]] = {hazard: [] for hazard in HEADINGS}
    for sentence in sentences:
        for hazard, group in groups.items():
            if own := tuple(part for part in sentence.parts if part.hazard is hazard):
                group.append(Sentence(sentence.subject, own))
    return {hazard: group for hazard, group in groups.items() if group}
