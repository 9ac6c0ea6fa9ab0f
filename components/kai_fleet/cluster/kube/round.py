"""What one API server may answer to one command: seconds, bytes, values and objects."""

import threading
import time
from typing import Any, Final

from kai_fleet.cluster.kube.errors import NO_API, TOO_LATE, UnreachableError

# Bytes of all answers together. Two thousand pods have 20 MiB.
OF_TENANTS: Final = 64 << 20
OF_OPERATORS: Final = 2 << 30
# JSON of an API server has a value for each 20 bytes, and an object for each 2000. A value takes up
# to 250 bytes of memory when it is parsed, and an object about a millisecond to judge.
_BYTES_A_VALUE: Final = 16
_BYTES_AN_OBJECT: Final = 1024
_WAITED_OF: Final = 60.0  # seconds
_DEEPEST: Final = 100  # a pod has 20 levels; whatever walks through a value stays within its stack


class Round:
    """What is left of the bounds of some requests. Threads share it.

    Args:
        seconds: The time for all of them.
        most: The bytes of all their answers; values and objects are bounded in proportion.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._ends, self._seconds = time.monotonic() + seconds, seconds
        self._changing = threading.Lock()
        self._bytes = self._most = most
        self._values = self._most_values = most // _BYTES_A_VALUE
        self._objects = self._most_objects = most // _BYTES_AN_OBJECT

    def seconds_left(self) -> float:
        """Seconds that are left. Raises UnreachableError where there are none."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise UnreachableError(f"it did not answer everything within {self._seconds:.0f} s")
        return left

    def allows_wait(self, seconds: float) -> bool:
        """Whether a wait ends in the first half of the time, and of a minute: what is to be asked
        then needs some, too.
        """
        waited = self._seconds - (self._ends - time.monotonic())
        return waited + seconds <= min(self._seconds, _WAITED_OF) / 2

    def take(self, piece: bytes) -> None:
        """Count a piece of an answer, before anything of it is parsed. Raises UnreachableError."""
        # A value stands behind a comma, or first in a list or a mapping.
        values = piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        with self._changing:
            self._bytes -= len(piece)
            self._values -= values
        if time.monotonic() > self._ends:
            raise UnreachableError(TOO_LATE)
        _require(self._bytes, f"{self._most >> 20} MiB")
        _require(self._values, f"{self._most_values} values")

    def take_objects(self, items: Any) -> None:
        """Count the objects of a list. Raises UnreachableError."""
        count = len(items) if isinstance(items, list) else 0
        with self._changing:
            self._objects -= count
        _require(self._objects, f"{self._most_objects} objects")


def _require(left: int, most: str) -> None:
    if left < 0:
        raise UnreachableError(f"it answers more than {most}, which is more than is read of it")


def require_shallow(content: Any) -> None:
    """Raise UnreachableError for a value with more levels than any object of Kubernetes has."""
    level = [content]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for each in level:
            inside = each.values() if isinstance(each, dict) else each
            below += [value for value in inside if isinstance(value, dict | list)]
        if not below:
            return
        level = below
    raise UnreachableError(NO_API)
