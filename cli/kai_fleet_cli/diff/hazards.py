"""What somebody has to know of a difference first: what is refused, what goes, what restarts."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
