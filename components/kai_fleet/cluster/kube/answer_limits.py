"""Limits on what one API server may answer to one command: seconds, bytes, values and objects."""

import threading
import time

from kai_fleet.cluster.kube.errors import NO_API, TOO_LATE, UnreachableError

# A mapping or a list of parsed JSON.
Container = dict[str, object] | list[object]
_MIB = 1 << 20
# Bytes of all answers together. Two thousand pods take 20 MiB.
TENANT_BYTES = 64 << 20
OPERATOR_BYTES = 2 << 30
# An API server's JSON has about one value in 20 bytes, and one object in 2000. A parsed value takes
# up to 250 bytes of memory, and checking an object takes about a millisecond.
_BYTES_A_VALUE = 16
_BYTES_AN_OBJECT = 1024
_BUSY_SECONDS = 60.0  # a server that is busy is asked again in half of this
_MOST_LEVELS = 100  # a pod has 20; recursive functions stay within Python's stack


class AnswerLimits:
    """What is left of the limits for some requests. Threads may share it.

    Args:
        seconds: The time for all requests.
        most_bytes: The bytes of all answers. The most values and objects are proportional to it.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._lock = threading.Lock()
        # By the words of messages.
        self._left = {
            "MiB": most_bytes / _MIB,
            "values": most_bytes // _BYTES_A_VALUE,
            "objects": most_bytes // _BYTES_AN_OBJECT,
        }
        self._most = dict(self._left)

    def seconds_left(self) -> float:
        """The seconds until the deadline. Raises UnreachableError after it."""
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise UnreachableError(f"it did not answer everything within {self._seconds:.0f} s")
        return seconds

    def allows_wait(self, seconds: float) -> bool:
        """Whether a wait would end within half of the time, and within half a minute.

        The rest is for the requests after the wait.
        """
        elapsed = self._seconds - (self._deadline - time.monotonic())
        return elapsed + seconds <= min(self._seconds, _BUSY_SECONDS) / 2

    def take(self, chunk: bytes) -> None:
        """Subtract the bytes and values of a chunk of JSON, before anything is parsed.

        Values are counted by commas and opening brackets, also by those in texts.

        Raises UnreachableError after the deadline, or if either limit is exceeded.
        """
        # Each value follows a comma, or is the first in a list or a mapping.
        values = chunk.count(b",") + chunk.count(b"[") + chunk.count(b"{")
        if time.monotonic() > self._deadline:
            raise UnreachableError(TOO_LATE)
        self._subtract("MiB", len(chunk) / _MIB)
        self._subtract("values", values)

    def take_objects(self, objects: object) -> None:
        """Subtract the objects of a list; anything else counts as none.

        Raises UnreachableError if the limit on objects is exceeded.
        """
        if isinstance(objects, list):
            self._subtract("objects", len(objects))

    def _subtract(self, what: str, amount: float) -> None:
        """Subtract from what is left. Raises UnreachableError if the limit is exceeded."""
        with self._lock:
            self._left[what] -= amount
        if self._left[what] < 0:
            limit = f"{self._most[what]:.0f} {what}"
            raise UnreachableError(
                f"it answers more than {limit}, which is more than is read of it"
            )


def require_shallow(content: Container) -> None:
    """Raise UnreachableError for JSON of more than 100 levels: no object of Kubernetes has so many.

    Recursive functions may read the value afterwards.
    """
    level = [content]
    for _ in range(_MOST_LEVELS):
        level = _containers_below(level)
        if not level:
            return
    raise UnreachableError(NO_API)


def _containers_below(level: list[Container]) -> list[Container]:
    """The lists and mappings directly inside the lists and mappings of one level."""
    below: list[Container] = []
    for container in level:
        values = container.values() if isinstance(container, dict) else container
        below += [value for value in values if isinstance(value, dict | list)]
    return below
