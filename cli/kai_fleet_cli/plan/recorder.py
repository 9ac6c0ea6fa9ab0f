"""Run a Pulumi program without an engine, and record the resources that it registers.

Pulumi's SDK sends each registration to a monitor, which is the engine. Here a monitor of our own
answers as the engine does in the first preview of a stack, and keeps the inputs.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import wait_for_rpcs

from kai_fleet.marks import SECRET_MARK, SIGNATURE
from kai_fleet.names import STACK
from kai_fleet.ownership.deployed import READ_OUTPUTS
from kai_fleet.urns import provider_urn, read_urn
from kai_fleet_cli.engine.environment import program as project_program
from kai_fleet_cli.stack_file.reading import PROJECT, SECRET
from kai_fleet_policies.key_paths import NAMESPACE
from kai_fleet_stack.settings.team_stack import OUTPUT

UNKNOWN = "[unknown until the update]"


@dataclass(frozen=True)
class Registered:
    """A resource as the program registers it.

    `parent` and `provider` are URNs, or "" for none. In `inputs` a secret is `[secret]`, a value
    that only the update can tell is UNKNOWN, and the keys of objects are sorted.
    """

    urn: str
    type: str
    name: str
    parent: str
    provider: str
    inputs: dict[str, Any] = field(hash=False)


class _Recorder(mocks.MockMonitor):
    """The monitor that the SDK talks to. It answers as in a first preview.

    `platform` is what the platform's stack exports for team stacks, or None. All other outputs of
    resources and functions are absent, so the SDK takes them as unknown.
    """

    def __init__(self, stack: str, platform: Mapping[str, object] | None) -> None:
        super().__init__(cast(mocks.Mocks, None))  # the methods below never call the mocks
        self.stack = stack
        self.stack_outputs: dict[str, object] = {}
        if platform is not None:
            self.stack_outputs = {"outputs": {OUTPUT: platform}}
        self.registered: dict[str, Registered] = {}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN as the engine forms it, with the types of all parents except the stack's.

        `parent` is the parent's URN, "" for none.
        """
        parent_types = [
            parent_type for parent_type in read_urn(parent).types if parent_type not in ("", STACK)
        ]
        qualified_type = "$".join([*parent_types, type_])
        return f"urn:pulumi:{self.stack}::{PROJECT}::{qualified_type}::{name}"

    # MockMonitor's methods answer the same, but parse all inputs a second time for `new_resource`.
    # The names are those of the gRPC protocol.

    def Invoke(  # noqa: N802
        self, request: resource_pb2.ResourceInvokeRequest
    ) -> resource_pb2.ResourceInvokeResponse:
        """Answer READ_OUTPUTS with the platform's outputs, every other function with nothing."""
        answer = self.stack_outputs if request.tok == READ_OUTPUTS else {}
        values = json_format.ParseDict(answer, struct_pb2.Struct())
        return resource_pb2.ResourceInvokeResponse(**{"return": values})  # a keyword of Python

    def RegisterResource(  # noqa: N802
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        return resource_pb2.RegisterResourceResponse(urn=self._register(request, request.object))

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest
    ) -> resource_pb2.ReadResourceResponse:
        return resource_pb2.ReadResourceResponse(urn=self._register(request, request.properties))

    def _register(
        self,
        request: resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest,
        inputs: struct_pb2.Struct,
    ) -> str:
        """Keep a resource, and return its URN. A second one with that URN replaces the first."""
        urn = self.make_urn(request.parent, request.type, request.name)
        self.registered[urn] = Registered(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            provider=provider_urn(request.provider),
            inputs=_readable(json_format.MessageToDict(inputs)),
        )
        return urn


def record(
    stack: str,
    settings: Mapping[str, object],
    platform: Mapping[str, object] | None = None,
    program: Callable[[], None] | None = None,
) -> list[Registered]:
    """Run a program with these settings, and return what it registers, sorted by URN.

    The stack itself is left out. The configuration, the options and the monitor of Pulumi's SDK are
    set for the whole process, and stay set.

    Args:
        stack: Name of the stack.
        settings: The `kai-fleet:` keys of its file, without that prefix.
        platform: What the platform's stack of a team stack exports for it.
        program: The program to run; the project's `__main__.py` unless set.

    Raises:
        pulumi.RunError: The program refuses its settings. Other exceptions of it pass, too.
    """
    recorder = _Recorder(stack, platform)
    pulumi.runtime.set_all_config(_as_config(settings))
    pulumi.runtime.reset_options()  # the SDK keeps the root resource of the program before
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
                (program or project_program)()
            finally:
                loop.run_until_complete(wait_for_rpcs())

        copy_context().run(run)  # context variables that a program sets end with it
    resources = [item for item in recorder.registered.values() if item.type != STACK]
    return sorted(resources, key=lambda resource: resource.urn)


def _as_config(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as the engine hands them over: JSON by prefixed key, the keys of objects sorted."""
    return {
        f"{NAMESPACE}:{key}": json.dumps(value, sort_keys=True) for key, value in settings.items()
    }


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Set an event loop of this thread that runs on demand only; close it at the end, and set the
    previous one again, None if there was none.
    """
    previous = None
    with suppress(RuntimeError):
        previous = asyncio.get_event_loop()
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        asyncio.set_event_loop(runner.get_loop())
        try:
            yield runner.get_loop()
        finally:
            asyncio.set_event_loop(previous)


def _readable(value: Any) -> Any:
    """A value of Pulumi's protocol as Registered has it, at any depth.

    Secrets become `[secret]`. Unknown values, and all others with a signature, such as assets,
    archives and references, become UNKNOWN. Whole floats become integers, which the protocol lacks.
    """
    if isinstance(value, dict):
        if SIGNATURE in value:
            return SECRET if value[SIGNATURE] == SECRET_MARK else UNKNOWN
        return {key: _readable(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_readable(element) for element in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return UNKNOWN if value == rpc.UNKNOWN else value
