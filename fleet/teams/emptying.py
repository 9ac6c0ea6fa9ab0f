"""Emptying a team's own stack, in a thread: what follows begins when only the namespace is left.

Kubernetes leaves a deleted namespace alone for five seconds. By then the vCluster is uninstalled,
its pods are told to end, and what the platform granted the team can be taken back meanwhile.
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

_NAMESPACE: Final = "kai-fleet:index:VirtualCluster$kubernetes:core/v1:Namespace::"


class NotEmptied(engine.EngineFailed):
    """A stack that kept something after its grant was taken back."""


class Emptying:
    """A stack that the engine empties."""

    def __init__(self, stack: Stack, pool: ThreadPoolExecutor, *, color: bool) -> None:
        self.stack = stack
        self._nearly = threading.Event()
        # An account that the platform grants needs its rights to the end.
        self._granted = "cluster" in stack_file.read(stack_file.path_of(stack.name))
        self.work: Future[None] = pool.submit(self._empty, color)

    def until_nearly_empty(self) -> None:
        """Return when nothing or only the host's namespace is left. Raises EngineFailed."""
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
            engine.destroy(self.stack, engine_line, color=color, hear=self._hear)
        finally:
            self._nearly.set()

    def _hear(self, event: automation.EngineEvent) -> None:
        step = event.resource_pre_event
        if step is not None and _NAMESPACE in step.metadata.urn and not self._granted:
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
