"""What a run did step by step, for whoever mends it after a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pulumi import automation

# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")


@dataclass
class Steps:
    """The steps of a run: whether it began to change anything, and those that ended in an error,
    each with what the engine said of it.
    """

    began: bool = False
    failed: list[tuple[Any, str]] = field(default_factory=list)
    _said: dict[str, str] = field(default_factory=dict)

    def note(self, event: automation.EngineEvent) -> None:
        """Hear of an event."""
        told = event.diagnostic_event
        if told is not None and told.urn and told.severity == "error":
            self._said[told.urn] = f"{self._said.get(told.urn, '')}{told.message}"
        if event.resource_pre_event is not None:
            operation = event.resource_pre_event.metadata.op
            self.began |= str(getattr(operation, "value", operation)) not in UNTOUCHED
        if event.res_op_failed_event is not None:
            step = event.res_op_failed_event.metadata
            self.failed.append((step, self._said.get(step.urn, "")))
