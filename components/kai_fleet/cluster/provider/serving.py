"""Serve a provider on the SDK's server, with short errors and partial states.

The SDK's server puts stack traces into messages, and knows no partially created resources.
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
from typing import Any, Final, NoReturn

import grpc
import grpc.aio
from pulumi import RunError
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2_grpc, status_pb2

from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.provider import PluginError, values

Values = dict[str, PropertyValue]
# As large messages as the engine's.
OPTIONS: Final = [
    (f"grpc.max_{way}_message_length", 400 * 1024 * 1024) for way in ("receive", "send")
]
_WORKERS: Final = 64  # the engine runs many operations at once, and one that waits holds its thread


def plain(properties: Mapping[str, PropertyValue]) -> dict[str, Any]:
    """Convert to plain Python: whole numbers become int, an unknown value stays its mark."""
    return values.plain(PropertyValue.marshal_map(dict(properties)))


def property_values(content: Mapping[str, Any]) -> Values:
    """Convert plain Python: the SDK's own class takes no int, and nothing nested that is plain."""
    return dict(PropertyValue.unmarshal_map(values.struct(content)))


def engine_address() -> str:
    """Return where the engine that started this plugin listens."""
    return next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")


class _Sentences(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Return an error as its message, a partial one with the state that exists."""

    async def intercept_service(
        self, continuation: Callable[..., Awaitable[Any]], details: Any
    ) -> Any:
        """Wrap a method's handler."""
        handler = await continuation(details)

        async def answer(request: Any, context: grpc.aio.ServicerContext) -> Any:
            try:
                return await handler.unary_unary(request, context)
            except NotImplementedError:
                raise  # the engine hears UNIMPLEMENTED, and asks in another way
            except Exception as error:
                cause: BaseException = error
                if not isinstance(error, RunError):
                    cause = error.__context__ or error  # the SDK raises another one in its place
                if not isinstance(cause, PluginError | KubeError | RunError):
                    traceback.print_exception(cause)  # the engine keeps it for its verbose log
                    method = details.method.rpartition("/")[2]
                    cause = PluginError(f"the plugin failed at {method}: {cause!r}")
                status = status_pb2.Status(code=2, message=str(cause))  # UNKNOWN
                if (partial := getattr(cause, "partial", None)) is not None:
                    status.details.add().Pack(partial)
                trailer = (("grpc-status-details-bin", status.SerializeToString()),)
                await context.abort(grpc.StatusCode.UNKNOWN, str(cause), trailer)

        return handler and grpc.unary_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )


def announce(port: int) -> None:
    """Tell the engine the port. End when it interrupts, and when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio would print a traceback

    def watch(parent: int) -> NoReturn:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
    print(port, flush=True)


def serve(
    provider: Provider,
    version: str,
    servicer: type[ProviderServicer] = ProviderServicer,
    announce: Callable[[int], None] = announce,
) -> None:
    """Answer the engine at a free port of the loopback, which it learns by `announce`."""

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
