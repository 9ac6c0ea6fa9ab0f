"""A provider plugin's process: its server, its line to the engine, what every plugin shares."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct

from .protocol import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

INFO = engine_pb2.INFO
WARNING = engine_pb2.WARNING

# The engine runs many operations at once and a waiting one holds its thread.
_WORKERS = 64
_MESSAGE_LIMIT = 400 * 1024 * 1024


class PluginError(Exception):
    """An operation failed; the text is the sentence that the user reads."""


class PartialError(PluginError):
    """The resource exists but did not become ready; the engine keeps `outputs` and tries again."""

    def __init__(
        self, message: str, resource_id: str, outputs: Struct, inputs: Struct | None = None
    ) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.outputs = outputs
        self.inputs = inputs


def answered(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any, grpc.ServicerContext], Any]:
    """A call of the protocol whose errors reach the user as one sentence, not as a traceback."""

    @functools.wraps(call)
    def answer(plugin: Plugin, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return call(plugin, request)
        except PluginError as error:
            plugin.fail(context, error)
        except Exception as error:
            # The engine keeps a plugin's stderr for its verbose log.
            traceback.print_exc()
            plugin.fail(
                context,
                PluginError(f"{plugin.called} failed at {call.__name__}: {error!r}"),
            )

    return answer


@functools.cache
def _engine(address: str) -> engine_pb2_grpc.EngineStub | None:
    """The engine at an address: most plugins never say anything, and a line to it takes 9 ms."""
    return engine_pb2_grpc.EngineStub(grpc.insecure_channel(address)) if address else None


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """What every plugin answers alike. Subclasses serve the resources, and say what they do not."""

    def __init__(self, name: str, version: str, engine_address: str = "") -> None:
        self.name = name
        self.version = version
        self.accepts_secrets = True
        self.cancelled = threading.Event()
        self._engine_address = engine_address

    def log(self, message: str, urn: str = "", severity: Any = INFO, passing: bool = False) -> None:
        """Shows `message` at the resource; a `passing` one is gone when the operation ends."""
        engine = _engine(self._engine_address)
        if engine is None:
            return
        request = engine_pb2.LogRequest(
            severity=severity, message=message, urn=urn, streamId=0, ephemeral=passing
        )
        try:
            engine.Log(request, timeout=5)
        except grpc.RpcError:
            # An engine that is gone, or too busy to show a message, is no reason to fail.
            return

    def fail(self, context: grpc.ServicerContext, error: Exception) -> NoReturn:
        """Ends the call with `error` as the engine expects it."""
        if isinstance(error, PartialError):
            detail = provider_pb2.ErrorResourceInitFailed(
                id=error.resource_id,
                properties=error.outputs,
                reasons=[str(error)],
                inputs=error.inputs,
            )
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
            status.details.add().Pack(detail)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
        context.abort(grpc.StatusCode.UNKNOWN, str(error) or type(error).__name__)
        raise AssertionError("abort returns only to a caller that ignores it")

    # Calls of the protocol, named as it names them.

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        self._engine_address = request.engine_address or self._engine_address
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True,
            accept_resources=False,
            accept_outputs=True,
            supports_autonaming_configuration=True,
        )

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Empty:  # noqa: D102, N802
        self._engine_address = request.address or self._engine_address
        return Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        return plugin_pb2.PluginInfo(version=self.version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        return provider_pb2.GetSchemaResponse(
            schema=f'{{"name": "{self.name}", "version": "{self.version}"}}'
        )

    def GetMapping(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        return provider_pb2.GetMappingResponse()

    def GetMappings(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        return provider_pb2.GetMappingsResponse()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Empty:  # noqa: D102, N802
        self.cancelled.set()
        return Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        self.fail(context, PluginError(self._unserved(f"function {request.tok}")))

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: D102, N802
        self.fail(context, PluginError(self._unserved(f"component {request.type}")))

    @property
    def called(self) -> str:
        """The plugin's name in a sentence."""
        return f"the plugin of {self.name}"

    def _unserved(self, what: str) -> str:
        return f"{self.called} does not serve the {what}"


def _leave_with_parent() -> None:
    """Ends the process when the engine that started it is gone, however it went."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(2)
    os._exit(0)


@functools.cache
def prepare() -> grpc.Server:
    """This process's server, of nothing yet: a fork that waits makes it before it is asked for."""
    return grpc.server(
        ThreadPoolExecutor(max_workers=_WORKERS),
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
            ("grpc.max_send_message_length", _MESSAGE_LIMIT),
        ],
    )


def serve(plugin: Plugin) -> None:
    """Serves `plugin` on a free port of the loopback, told to the engine on stdout."""
    server = prepare()
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


def engine_address(arguments: list[str]) -> str:
    """The engine's address among a plugin's arguments, "" when it comes by handshake."""
    return next((given for given in arguments if not given.startswith("-")), "")
