"""The value that stands for what only the update will know, in whatever a program declares."""

from enum import Enum
from typing import Any, Final


class Unknown(Enum):
    """The type of UNKNOWN."""

    UNKNOWN = "unknown until the update"

    def __repr__(self) -> str:
        """Short, as it appears in messages of failed tests."""
        return "UNKNOWN"


# It may stand anywhere: the model's types are those of values that are known.
UNKNOWN: Final[Any] = Unknown.UNKNOWN
