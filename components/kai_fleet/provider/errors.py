"""How an operation of the provider fails: with a sentence for the user, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class PluginError(Exception):
    """An operation failed; the text is the sentence that the user reads."""


class PartialError(PluginError):
    """The resource is there, but not as wanted: the engine keeps `state`, and tries again.

    `reasons` are shown below the message. The inputs of the last time stay where none are given.
    """

    def __init__(
        self,
        message: str,
        resource_id: str,
        state: Mapping[str, Any],
        inputs: Mapping[str, Any] | None = None,
        reasons: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.state = state
        self.inputs = inputs
        self.reasons = (message, *reasons)
