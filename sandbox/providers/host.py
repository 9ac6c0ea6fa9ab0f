"""A stand-in's process: its server, and how an operation that failed is told.

The SDK's own host (`pulumi.provider.experimental`) adds a traceback to each error, and has no way
to say that a resource exists but is not ready.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from sandbox.providers.values import Properties, encode

INFO: Final = engine_pb2.INFO
WARNING: Final = engine_pb2.WARNING
_WORKERS: Final = 64  # one operation each; one that waits holds its thread
_MESSAGE_BYTES: Final = 400 * 1024 * 1024


class PluginError(Exception):
    """An operation failed; the text is what the user reads."""


class NotReadyError(PluginError):
    """The resource exists and is not as wanted: the engine keeps `state`, and updates it next."""

    def __init__(self, text: str, resource_id: str, state: Properties, *reasons: str) -> None:
        super().__init__(text)
        self.detail = provider_pb2.ErrorResourceInitFailed(
            id=resource_id, properties=encode(state), reasons=[text, *reasons]
        )


def answered(call: Callable[[Any, Any], Any]) -> Callable[[Any, Any, grpc.ServicerContext], Any]:
    """A call of the protocol whose errors reach the user as their text."""

    @functools.wraps(call)
    def answer(standin: StandIn, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return call(standin, request)
        except NotReadyError as error:
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
            status.details.add().Pack(error.detail)
            details = ("grpc-status-details-bin", status.SerializeToString())
            context.set_trailing_metadata((details,))
            _abort(context, str(error))
        except PluginError as error:
            _abort(context, str(error))

    return answer


def _abort(context: grpc.ServicerContext, text: str) -> NoReturn:
    context.abort(grpc.StatusCode.UNKNOWN, text)
    raise AssertionError("abort raises")


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """What both stand-ins answer alike; each serves its own resources."""

    def __init__(self, name: str, version: str, engine: str = "") -> None:
        self.name, self.version = name, version
        self.cancelled = threading.Event()
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine)) if engine else None

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

    # Calls of the protocol, named as it names them.

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return plugin_pb2.PluginInfo(version=self.version)

    def Cancel(self, request: Any, context: Any) -> Empty:  # noqa: D102, N802
        self.cancelled.set()
        return Empty()


def serve(make: Callable[[str], StandIn]) -> None:
    """Serve a stand-in, made with the engine's address, until the engine ends."""
    engine = next((given for given in sys.argv[1:] if not given.startswith("-")), "")
    sizes = [(f"grpc.max_{way}_message_length", _MESSAGE_BYTES) for way in ("receive", "send")]
    server = grpc.server(ThreadPoolExecutor(_WORKERS), options=sizes)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(make(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(port, flush=True)
    server.wait_for_termination()


def _end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)
