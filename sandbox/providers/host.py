"""A stand-in's process: what both stand-ins answer alike.

Not the SDK's own host (`pulumi.provider.experimental`): what that answers to `DiffConfig` is not
what the provider said.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)

from kai_fleet.provider.errors import PluginError
from kai_fleet.provider.process import OPTIONS, engine_address, leave_with_parent
from kai_fleet.provider.server import details
from sandbox.providers.values import decode, encode

INFO: Final = engine_pb2.INFO
WARNING: Final = engine_pb2.WARNING
_WORKERS: Final = 64  # one operation each; one that waits holds its thread


def answered(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any, grpc.ServicerContext], Any]:
    """A call of the protocol whose errors reach the user as their text."""

    @functools.wraps(call)
    def answer(standin: StandIn, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return call(standin, request)
        except PluginError as error:
            context.set_trailing_metadata(details(error))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return answer


def type_of(urn: str) -> str:
    """The type of a resource, such as `kubernetes:core/v1:Secret`."""
    return urn.split("::")[2].rpartition("$")[2]


def name_of(urn: str) -> str:
    """What the program calls a resource."""
    return urn.split("::", 3)[3]


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """What both stand-ins answer alike; each serves its own resources."""

    def __init__(self, name: str, version: str, engine: str = "") -> None:
        self.name, self.version = name, version
        self.cancelled = threading.Event()
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine)) if engine else None

    def resources(self, token: str) -> Any:
        """What serves a type, as `Objects` does. Raises PluginError where nothing does."""
        raise NotImplementedError

    def log(self, text: str, urn: str = "", severity: Any = INFO, passing: bool = False) -> None:
        """Show a text at the resource; a `passing` one is gone when the operation ends."""
        if self._engine is None:
            return
        request = engine_pb2.LogRequest(
            severity=severity, message=text, urn=urn, streamId=0, ephemeral=passing
        )
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            return  # an engine that is gone is no reason to fail

    def unserved(self, what: str) -> PluginError:
        """That this needs the official plugin."""
        return PluginError(
            f"{what} is not served by kai-fleet's stand-in for Pulumi's {self.name} provider: "
            f"install the plugin, `pulumi plugin install resource {self.name} {self.version}`."
        )

    def _of(self, request: Any) -> Any:
        return self.resources(type_of(request.urn))

    # Calls of the protocol, named as it names them.

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return plugin_pb2.PluginInfo(version=self.version)

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def Check(self, request: Any) -> Any:  # noqa: D102, N802
        return self._of(request).check(request)

    @answered
    def Diff(self, request: Any) -> Any:  # noqa: D102, N802
        return self._of(request).diff(request)

    @answered
    def Create(self, request: Any) -> Any:  # noqa: D102, N802
        made, state = self._of(request).create(request, decode(request.properties))
        return provider_pb2.CreateResponse(id=made, properties=encode(state))

    @answered
    def Read(self, request: Any) -> Any:  # noqa: D102, N802
        where, state, inputs = self._of(request).read(request) or ("", {}, {})
        return provider_pb2.ReadResponse(id=where, properties=encode(state), inputs=encode(inputs))

    @answered
    def Update(self, request: Any) -> Any:  # noqa: D102, N802
        state = self._of(request).update(request, decode(request.news))
        return provider_pb2.UpdateResponse(properties=encode(state))

    @answered
    def Delete(self, request: Any) -> Any:  # noqa: D102, N802
        self._of(request).delete(request)
        return Empty()

    def Cancel(self, request: Any, context: Any) -> Empty:  # noqa: D102, N802
        self.cancelled.set()
        return Empty()


def serve(make: Callable[[str], StandIn]) -> None:
    """Serve a stand-in, made with the engine's address, until the engine ends."""
    server = grpc.server(ThreadPoolExecutor(_WORKERS), options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(make(engine_address()), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    leave_with_parent()
    print(port, flush=True)
    server.wait_for_termination()
