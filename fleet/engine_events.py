"""What an update did, from the engine's own events.

The Automation API asks the CLI three more times after each update, for outputs and history: a
second and a half of four. The events say it too, secrets masked, which is all that is shown.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pulumi import automation
from pulumi.automation import _stack
from pulumi.automation.events import EngineEvent, OpType

from components.past import STACK
from fleet.workspace import Workspace


@dataclass
class Told:
    """What the events of one run said: resources by what happened to them, and the outputs."""

    changes: dict[str, int] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)

    def hear(self, event: EngineEvent) -> None:
        """Take up one event."""
        done = event.res_outputs_event
        if done is not None and done.metadata.type == STACK and done.metadata.new is not None:
            self.outputs = done.metadata.new.outputs or {}
        elif event.summary_event is not None:
            counts = event.summary_event.resource_changes or {}
            self.changes = {
                op.value if isinstance(op, OpType) else str(op): n for op, n in counts.items()
            }


class Stack(automation.Stack):
    """A stack that, while it listens to a run, asks the CLI nothing about that run."""

    _listening = False
    _workspace: Workspace

    @classmethod
    def opened(cls, name: str, workspace: Workspace) -> Stack:
        """The stack of that name, created on first use. Raises CommandError."""
        found = cls(name, workspace, _stack.StackInitMode.CREATE_OR_SELECT)
        found._workspace = workspace
        return found

    @contextmanager
    def listening(self) -> Iterator[tuple[Told, Callable[[EngineEvent], None]]]:
        """What is told, and the function to hand to `up` or `destroy` as `on_event`."""
        told = Told()
        self._listening = True
        try:
            yield told, told.hear
        finally:
            self._listening = False

    @contextmanager
    def asked(self, *options: str) -> Iterator[None]:
        """Hand the CLI options for which the Automation API has no words."""
        self._workspace.arguments = options
        try:
            yield
        finally:
            self._workspace.arguments = ()

    def outputs(self) -> automation.OutputMap:
        """The stack's outputs, secrets in clear; nothing while it listens."""
        return {} if self._listening else super().outputs()

    def info(self, show_secrets: bool = True) -> automation.UpdateSummary | None:
        """The last update; an empty one while it listens."""
        if not self._listening:
            return super().info(show_secrets)
        now = datetime.datetime.now(datetime.UTC)
        return automation.UpdateSummary("update", now, "", {}, {}, "succeeded")
