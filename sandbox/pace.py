"""How often the sandbox looks at a cluster: in rounds, sooner while parts of KAI come and go."""

from __future__ import annotations

import time
from typing import Final

ROUND_SECONDS: Final = 1.5
# KAI's operator watches, and so acts at once on what changes.
_BUSY_ROUND_SECONDS: Final = 0.3
_BUSY_SECONDS: Final = 3.0


class Pace:
    """Of the looks at one cluster's KAI."""

    def __init__(self) -> None:
        self._seen: object = None
        self._busy_until = 0.0

    def after(self, seen: object) -> None:
        """Hear of what a look saw."""
        if seen != self._seen:
            self._seen = seen
            self._busy_until = time.monotonic() + _BUSY_SECONDS

    @property
    def seconds(self) -> float:
        """Until the next look."""
        return _BUSY_ROUND_SECONDS if time.monotonic() < self._busy_until else ROUND_SECONDS
