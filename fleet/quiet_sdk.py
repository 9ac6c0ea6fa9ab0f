"""Pulumi's SDK without what it does for an engine in vain: there is none in an offline plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

from pulumi import Output
from pulumi.runtime import resource
from pulumi.runtime.proto import source_pb2
from pulumi.runtime.sync_await import _ensure_event_loop

_create_urn: Final = resource.create_urn


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, a program runs in less time; what it registers stays the same."""
    loop = _ensure_event_loop()  # type: ignore[no-untyped-call]
    with ExitStack() as until:
        for where, name, instead in (
            # Each request in a thread of its own, and a word between the threads for each answer.
            (loop, "run_in_executor", _here),
            # Where each resource was declared, for the engine's errors.
            (resource, "_get_stack_trace", source_pb2.StackTrace),
            # For each resource its URN in case that nobody answers, by nine tasks.
            (resource, "create_urn", _urn),
        ):
            until.enter_context(mock.patch.object(where, name, instead))
        yield


async def _here(_executor: None, ask: Callable[[], Any]) -> Any:
    return ask()


def _urn(name: Any, type_: Any, parent: Any = None, *more: Any) -> Output[str]:
    """The SDK's own, at once where all that it takes is known; aliases have more to wait for."""
    if not all(isinstance(part, str) for part in (name, type_, parent)):
        return _create_urn(name, type_, parent, *more)
    return Output.from_input(f"{parent[: parent.rfind('::')]}${type_}::{name}")
