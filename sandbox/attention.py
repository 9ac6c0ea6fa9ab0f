"""When to look at a cluster again: soon after something happened in it, and else seldom.

To ask twenty idle vClusters every second and a half kept one of two cores busy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from sandbox import kai_operator
from sandbox.kube_api import Api, Watch

ROUND_SECONDS: Final = 1.5
SELDOM_SECONDS: Final = 30.0
_AFTER_SECONDS: Final = 10.0  # so long after something happened each round: the rest of it comes
# KAI's operator acts at once. Pods wait their round, which leaves who makes one the time to say
# the rest about it.
_AT_ONCE: Final = 0.2
_OF_KAI: Final = (kai_operator.DEPLOYMENTS,)
_WHERE_KAI_IS: Final = (kai_operator.CONFIGS, kai_operator.SHARDS)
_OF_PODS: Final = ("/api/v1/pods", "/api/v1/persistentvolumeclaims")


class Attention:
    """To one cluster: `wait` until it is due, which what its watches see makes it."""

    def __init__(self) -> None:
        self._due = self._busy_until = 0.0
        self._lock = threading.Lock()
        self._earlier = threading.Event()
        self._watches: dict[str, Watch] = {}

    def within(self, seconds: float) -> None:
        """Have it due in so many seconds at the latest, because something happened."""
        due = time.monotonic() + seconds
        with self._lock:
            self._busy_until = due + _AFTER_SECONDS
            if due < self._due:
                self._due = due
                self._earlier.set()

    def wait(self) -> None:
        """Return when it is due, and begin anew."""
        while True:
            with self._lock:
                self._earlier.clear()
                now = time.monotonic()
                left = self._due - now
                if left <= 0:
                    self._due = now + (ROUND_SECONDS if now < self._busy_until else SELDOM_SECONDS)
                    return
            self._earlier.wait(left)

    def watch(self, api: Api, *, kai: bool) -> None:
        """Notice what happens there from now on; `kai`: its kinds are there, too."""
        for path in _OF_KAI + (_WHERE_KAI_IS if kai else ()):
            self._watch(api, path, partial(self.within, _AT_ONCE))
        for path in _OF_PODS:
            self._watch(api, path, partial(self.within, ROUND_SECONDS))

    def leave(self) -> None:
        """Notice nothing any more."""
        for watch in self._watches.values():
            watch.stop()
        self._watches = {}

    def _watch(self, api: Api, path: str, changed: Callable[[], None]) -> None:
        if path not in self._watches:
            self._watches[path] = Watch(api, path, changed)
            self._watches[path].start()
