"""The value that stands for what only the update will know."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias


class Unknown(Enum):
    """The type of UNKNOWN."""

    UNKNOWN = "unknown until the update"

    def __repr__(self) -> str:
        """Short, as it appears in messages of failed tests."""
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN

Amount: TypeAlias = float | Unknown
Text: TypeAlias = str | Unknown
