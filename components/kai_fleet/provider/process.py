"""A plugin's process: where its engine is, how it listens and answers, when it ends.

By the protocol's generated classes: of the SDK's own servers one serves components alone, and the
other is experimental, fails at outputs that are not known yet, puts stack traces into messages, and
cannot say that a resource was made in part.
"""

import asyncio
import functools
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from kai_fleet.provider import PartialError, PluginError
from kai_fleet.provider.values import struct

# As large messages as the engine's.
OPTIONS: Final = [
    (f"grpc.max_{way}_message_length", 400 * 1024 * 1024) for way in ("receive", "send")
]
_WORKERS: Final = 64  # the engine runs many operations at once, and one that waits holds its thread

Answer = Callable[[Any, Any, grpc.aio.ServicerContext], Awaitable[Any]]


def engine_address() -> str:
    """Where the engine that started this plugin listens."""
    return next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")


def announce(port: int) -> None:
    """Tell the engine the port; from here on the process ends when the engine wants it, or is gone.

    On SIGINT it ends at once, whatever it waits for.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch(parent: int) -> NoReturn:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
    print(port, flush=True)


def serve(servicer: Any, register: Callable[[Any, grpc.Server], None], workers: int) -> None:
    """Answer the engine at a free port of the loopback, on so many threads; never returns."""
    server = grpc.server(ThreadPoolExecutor(workers), options=OPTIONS)
    register(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(port)
    server.wait_for_termination()


def answering(call: Callable[[Any, Any], Any]) -> Answer:
    """Make a call of the protocol of a method that takes a request and returns the answer.

    It runs on a thread of its own. An error reaches the user as one sentence.
    """

    @functools.wraps(call)
    async def answer(self: Any, request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.workers, call, self, request)
        except Exception as error:
            sentence = _sentence(error, call.__name__)
            await context.abort(grpc.StatusCode.UNKNOWN, str(sentence), _details(sentence))
            raise AssertionError("abort does not return") from None

    return answer


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """What every provider answers alike. Calls are named as the protocol names them."""

    def __init__(self, version: str) -> None:
        self._version = version
        self.workers = ThreadPoolExecutor(_WORKERS)
        self.cancelled = threading.Event()

    @answering
    def GetPluginInfo(self, request: Any) -> Any:  # noqa: N802
        """Its version."""
        return plugin_pb2.PluginInfo(version=self._version)

    @answering
    def CheckConfig(self, request: Any) -> Any:  # noqa: N802
        """Nothing is configured: each resource says which cluster it is for."""
        return provider_pb2.CheckResponse(inputs=request.news)

    @answering
    def DiffConfig(self, request: Any) -> Any:  # noqa: N802
        """Nothing is configured."""
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @answering
    def Configure(self, request: Any) -> Any:  # noqa: N802
        """What it understands of the protocol."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    @answering
    def Cancel(self, request: Any) -> Empty:  # noqa: N802
        """End what waits for a cluster."""
        self.cancelled.set()
        return Empty()


async def serve_provider(plugin: Servicer) -> None:
    """Answer the engine at a free port of the loopback; never returns."""
    server = grpc.aio.server(options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    announce(port)
    await server.wait_for_termination()


def _sentence(error: BaseException, call: str) -> PluginError:
    """What the user reads of an error. The SDK raises another one while it handles ours."""
    here: BaseException | None = error
    while here is not None:
        if isinstance(here, PluginError):
            return here
        here = here.__cause__ or here.__context__
    cause = error.__context__ or error
    traceback.print_exception(cause)  # the engine keeps it for its verbose log
    return PluginError(f"the plugin kai-fleet failed at {call}: {cause!r}")


def _details(error: PluginError) -> tuple[tuple[str, bytes], ...]:
    """What the engine is to know of a failure beside its text, as metadata of the answer."""
    if not isinstance(error, PartialError):
        return ()
    partial = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=struct(error.state),
        inputs=error.inputs,
        reasons=[str(error)],
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(partial)
    return (("grpc-status-details-bin", status.SerializeToString()),)
