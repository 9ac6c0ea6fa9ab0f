"""Run the program without an engine, and record what it registers."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pulumi
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import wait_for_rpcs

from kai_fleet.deployed import READ_OUTPUTS
from kai_fleet.marks import SECRET_MARK, SIGNATURE
from kai_fleet.names import STACK
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.team_stack import OUTPUT
from kai_fleet.urns import provider_urn, read_urn
from kai_fleet_cli.engine.environment import program as own_program
from kai_fleet_cli.stack_file.reading import PROJECT, SECRET

UNKNOWN: Final = "[unknown until the update]"


@dataclass(frozen=True)
class Registered:
    """A resource as the program registers it. Secrets are masked, unknown values are marked."""

    urn: str
    type: str
    name: str
    parent: str
    provider: str
    inputs: dict[str, Any] = field(hash=False)


class _Recorder(mocks.MockMonitor):
    """The engine's side of the program: answers as a first preview, records each registration.

    Outputs are unknown, but for those of a team stack's platform.
    """

    def __init__(self, stack: str, platform: Mapping[str, Any] | None) -> None:
        super().__init__(cast(mocks.Mocks, None))  # nothing asks them
        self.stack = stack
        self.outputs = {"outputs": {OUTPUT: platform}} if platform is not None else {}
        self.registered: dict[str, Registered] = {}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The engine's URN: with the types of all parents, but not the stack's own."""
        above = [kind for kind in read_urn(parent).types if kind not in ("", STACK)]
        qualified = "$".join((*above, type_))
        return f"urn:pulumi:{self.stack}::{PROJECT}::{qualified}::{name}"

    # The base class answers the same, but first parses all inputs again for `new_resource`.

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        answer = self.outputs if request.tok == READ_OUTPUTS else {}
        values = json_format.ParseDict(answer, struct_pb2.Struct())
        return resource_pb2.ResourceInvokeResponse(**{"return": values})

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        urn = self._register(request, request.object)
        return resource_pb2.RegisterResourceResponse(urn=urn)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        urn = self._register(request, request.properties)
        return resource_pb2.ReadResourceResponse(urn=urn)

    def _register(self, request: Any, inputs: struct_pb2.Struct) -> str:
        urn = self.make_urn(request.parent, request.type, request.name)
        plain = _shown(json_format.MessageToDict(inputs))
        names = (request.type, request.name, request.parent, provider_urn(request.provider))
        self.registered[urn] = Registered(urn, *names, plain)
        return urn


def record(
    stack: str,
    settings: Mapping[str, Any],
    platform: Mapping[str, Any] | None = None,
    program: Callable[[], None] | None = None,
) -> list[Registered]:
    """Everything that a program registers for a stack of these settings, sorted by URN.

    `platform` is what the platform stack of a team stack exports under that name. `program` is this
    project's own where it is None.
    """
    recorder = _Recorder(stack, platform)
    # The engine hands objects over with their keys sorted.
    values = {key: json.dumps(value, sort_keys=True) for key, value in settings.items()}
    pulumi.runtime.set_all_config({f"{NAMESPACE}:{key}": value for key, value in values.items()})
    pulumi.runtime.reset_options()  # of the stack that was declared before
    with _event_loop() as loop:
        mocks.set_mocks(
            recorder.mocks,
            project=PROJECT,
            stack=stack,
            preview=True,
            monitor=recorder,
            logger=logging.Logger("offline plan", level=logging.CRITICAL + 1),
            organization="organization",
        )

        def run() -> None:
            try:
                (program or own_program)()
            finally:
                loop.run_until_complete(wait_for_rpcs())

        copy_context().run(run)  # what a program sets for itself ends with it
    registered = (item for item in recorder.registered.values() if item.type != STACK)
    return sorted(registered, key=lambda item: item.urn)


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs on demand only; the previous one is restored afterwards."""
    before = None
    with suppress(RuntimeError):
        before = asyncio.get_event_loop()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        asyncio.set_event_loop(runner.get_loop())
        try:
            yield runner.get_loop()
        finally:
            asyncio.set_event_loop(before)


def _shown(value: Any) -> Any:
    """A registered value as a reader may see it, the keys of objects sorted."""
    if isinstance(value, dict):
        if SIGNATURE in value:
            return SECRET if value[SIGNATURE] == SECRET_MARK else UNKNOWN
        return {key: _shown(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return UNKNOWN if value == rpc.UNKNOWN else value
