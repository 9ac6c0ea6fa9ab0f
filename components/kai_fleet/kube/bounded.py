"""Answers that end: a server may send slowly, for ever, or more than fits into memory.

urllib3's own limits are for each piece that arrives. These are for an answer as a whole, and hold
for its head as well, which only a socket sees while it arrives.
"""

import contextlib
import http.client
import io
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import urllib3

_HEAD: Final = 256 << 10  # bytes beside the body


class TooMuchError(OSError):
    """The answer is longer than it may be."""


@dataclass
class _Bounds:
    ends: float
    left: int


class _OfThread(threading.local):
    bounds: _Bounds | None = None


_now: Final = _OfThread()


@contextlib.contextmanager
def bounded(seconds: float, most: int) -> Iterator[None]:
    """Bound each answer to this thread: in seconds, and in bytes (`most`).

    For pools that `bind` was called with. Raises TimeoutError and TooMuchError from within a
    request, which urllib3 hands on as its own.
    """
    before = _now.bounds
    _now.bounds = _Bounds(time.monotonic() + seconds, most + _HEAD)
    try:
        yield
    finally:
        _now.bounds = before


def bind(pools: urllib3.PoolManager) -> None:
    """Have every connection of these pools keep to the bounds."""
    pools.pool_classes_by_scheme = {
        scheme: _bounded_pool(kind) for scheme, kind in pools.pool_classes_by_scheme.items()
    }


def _bounded_pool(kind: type[Any]) -> type[Any]:
    """A class of pools, plain, through TLS or through SOCKS, whose connections keep to them."""
    connection = type("BoundedConnection", (kind.ConnectionCls,), {"response_class": _Response})
    return type("BoundedPool", (kind,), {"ConnectionCls": connection})


class _Raw(io.RawIOBase):
    """What arrives from a socket, until its bounds are reached."""

    def __init__(self, raw: Any, sock: Any, bounds: _Bounds) -> None:
        self._raw, self._sock, self._bounds = raw, sock, bounds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Wait no longer than is left."""
        left = self._bounds.ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        timeout = self._sock.gettimeout()
        self._sock.settimeout(left if timeout is None else min(timeout, left))
        try:
            count: int | None = self._raw.readinto(buffer)
        finally:
            with contextlib.suppress(OSError):
                self._sock.settimeout(timeout)
        self._bounds.left -= count or 0
        if self._bounds.left < 0:
            raise TooMuchError("it answers more than is read of it")
        return count

    def close(self) -> None:
        """The socket's part, too."""
        with contextlib.suppress(OSError):
            self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        if _now.bounds is not None:
            self.fp = io.BufferedReader(_Raw(self.fp.detach(), sock, _now.bounds))
