"""Emptying a team's own stack, which goes too, in a thread: what follows begins meanwhile.

When the vCluster goes nothing is left but its release and namespace, which take the longest: pods
end, and Kubernetes leaves a deleted namespace alone for five seconds. What the platform granted
the team is taken back meanwhile, and with the last grant goes a namespace of the host, as slowly.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Final

from pulumi import automation

from fleet import engine, stack_file
from fleet.engine_events import Stack
from fleet.screen import engine_line

# The last two that go; only the second where an earlier try has uninstalled the release.
_LAST: Final = (
    "kai-fleet:index:VirtualCluster$kubernetes:helm.sh/v3:Release::",
    "kai-fleet:index:VirtualCluster$kubernetes:core/v1:Namespace::",
)


class NotEmptied(engine.EngineFailed):
    """A stack that kept something after its grant was taken back."""


class Emptying:
    """A stack that the engine empties."""

    def __init__(self, stack: Stack, pool: ThreadPoolExecutor, *, color: bool) -> None:
        self.stack = stack
        self._nearly = threading.Event()
        settings = stack_file.read(stack_file.path_of(stack.name))
        self._team = str(settings["team"]["name"])
        # An account that the platform grants needs its rights to the end.
        self._granted = "cluster" in settings
        self.work: Future[None] = pool.submit(self._empty, color)

    def until_nearly_empty(self) -> None:
        """Return when no more than the release and the namespace are left. Raises EngineFailed."""
        self._nearly.wait()
        if self.work.done():
            self.work.result()

    def until_empty(self) -> None:
        """Return when nothing is left. Raises NotEmptied."""
        try:
            self.work.result()
        except engine.EngineFailed as why:
            raise NotEmptied(str(why)) from None

    def _empty(self, color: bool) -> None:
        try:
            engine.destroy(
                self.stack, engine_line, color=color, hear=self._hear, leaving=self._team
            )
        finally:
            self._nearly.set()

    def _hear(self, event: automation.EngineEvent) -> None:
        step = event.resource_pre_event
        if step is None or self._granted:
            return
        if any(last in step.metadata.urn for last in _LAST):
            self._nearly.set()


@contextmanager
def emptying(stacks: Sequence[Stack], *, color: bool) -> Iterator[list[Emptying]]:
    """Begin with each; all have ended, however, when the block is left."""
    with ThreadPoolExecutor(max(1, len(stacks))) as pool:
        begun = [Emptying(stack, pool, color=color) for stack in stacks]
        try:
            yield begun
        finally:
            wait([each.work for each in begun])
