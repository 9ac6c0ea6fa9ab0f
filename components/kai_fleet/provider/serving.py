"""Serve a provider on the SDK's server, with short errors and partial states.

The SDK's server puts stack traces into messages, and cannot report a resource that was created in
part.
"""

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import Message
from pulumi import RunError
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2_grpc, status_pb2

from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.provider import PluginError, values

Values = dict[str, PropertyValue]
_MOST_BYTES = 400 << 20  # of a message; the engine has the same limit
OPTIONS = [
    ("grpc.max_receive_message_length", _MOST_BYTES),
    ("grpc.max_send_message_length", _MOST_BYTES),
]
# The engine runs many operations at the same time, and each waits in a thread.
_WORKERS = 64
_ERROR_CODE = 2  # UNKNOWN
_WATCH_SECONDS = 1.0


def python_properties(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """The properties in plain Python: whole numbers are int, unknown values `marks.UNKNOWN`."""
    return values.python_values(PropertyValue.marshal_map(dict(properties)))


def property_values(content: Mapping[str, object]) -> Values:
    """Plain Python as the SDK's values: its own class takes neither an int nor a nested value.

    Raises ValueError for a value that JSON does not have.
    """
    return dict(PropertyValue.unmarshal_map(values.struct(content)))


def engine_address() -> str:
    """The address of the engine that started this plugin, from the command line; "" without one."""
    for argument in sys.argv[1:]:
        if not argument.startswith("-"):
            return argument
    return ""


class _Sentences(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Answer an error with its message, and a partial one with the state that exists."""

    async def intercept_service(
        self,
        continuation: Callable[..., Awaitable[grpc.RpcMethodHandler | None]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Wrap the handler of a method; None if the servicer has no such method."""
        handler = await continuation(details)
        if handler is None:
            return None

        async def answer(request: Message, context: grpc.aio.ServicerContext) -> Message:
            """Call the handler. Any error but NotImplementedError aborts the call in its words."""
            try:
                return await handler.unary_unary(request, context)
            except NotImplementedError:
                raise  # becomes UNIMPLEMENTED: the engine then uses another method
            except Exception as error:
                cause = _cause(error, details.method.rpartition("/")[2])
                status = status_pb2.Status(code=_ERROR_CODE, message=str(cause))
                partial = getattr(cause, "partial", None)
                if partial is not None:
                    status.details.add().Pack(partial)
                trailer = (("grpc-status-details-bin", status.SerializeToString()),)
                await context.abort(grpc.StatusCode.UNKNOWN, str(cause), trailer)
                raise  # never reached: `abort` raises

        return grpc.unary_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )


def _cause(error: Exception, method: str) -> BaseException:
    """The error whose message the user gets.

    An error that we raised on purpose, or a PluginError that names the method. The traceback of any
    other error goes to stderr, where the engine keeps it for its verbose log.
    """
    cause: BaseException = error
    if not isinstance(error, RunError):
        cause = error.__context__ or error  # the SDK replaces errors of a provider by its own
    if isinstance(cause, PluginError | KubeError | RunError):
        return cause
    traceback.print_exception(cause)
    return PluginError(f"the plugin failed at {method}: {cause!r}")


def announce(port: int) -> None:
    """Tell the engine the port, on stdout. Only the main thread may call this.

    From then on Ctrl-C ends the process, and so does the end of the engine within a second.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise asyncio prints a traceback

    def watch(parent: int) -> NoReturn:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
    print(port, flush=True)


def serve(
    provider: Provider,
    version: str,
    servicer: type[ProviderServicer] = ProviderServicer,
    announce: Callable[[int], None] = announce,
) -> None:
    """Serve on a free port of the loopback interface, until the process ends.

    The engine's address is the first argument of this process that is no option.

    Args:
        provider: What answers the engine.
        version: The version of the plugin that the engine is told.
        servicer: Hands the engine's calls to `provider`.
        announce: It is called with the port, once the server answers there.
    """

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_WORKERS))
        server = grpc.aio.server(interceptors=[_Sentences()], options=OPTIONS)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(
            servicer(sys.argv[1:], version, provider, engine_address()), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        announce(port)
        await server.wait_for_termination()

    asyncio.run(run())
