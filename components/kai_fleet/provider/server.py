"""The plugin's process: the SDK's server for the provider, with failures as sentences."""

from __future__ import annotations

import asyncio
import functools
import signal
import traceback
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

import grpc
import grpc.aio
import pulumi
from google.protobuf.empty_pb2 import Empty
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import ConstructRequest, DeleteRequest, Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.resource import DependencyResource
from pulumi.runtime.proto import alias_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from kai_fleet.provider.errors import PartialError, PluginError
from kai_fleet.provider.process import OPTIONS, engine_address, leave_with_parent
from kai_fleet.provider.unknown_outputs import filled
from kai_fleet.provider.values import properties

_ASKED: Final[ContextVar[provider_pb2.ConstructRequest]] = ContextVar("asked")
Call = Callable[[Any, Any, grpc.aio.ServicerContext], Awaitable[Any]]


def _in_a_sentence(call: Call) -> Call:
    """A call of the protocol whose errors reach the user as one sentence.

    The SDK puts a stack trace into an error's text, and has no way to say that a resource was made
    in part.
    """

    @functools.wraps(call)
    async def answer(self: Any, request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await call(self, request, context)
        except Exception as why:
            error = _cause(why)
            if not isinstance(error, PluginError):
                traceback.print_exception(error)  # the engine keeps it for its verbose log
                asked = type(request).__name__.removesuffix("Request")
                error = PluginError(f"the plugin kai-fleet failed at {asked}: {error!r}")
            await context.abort(grpc.StatusCode.UNKNOWN, str(error), details(error))
            raise AssertionError("abort does not return") from None

    return answer


def _cause(why: BaseException) -> BaseException:
    """What was raised here: what the SDK raises has it as its context."""
    here: BaseException | None = why
    while here is not None:
        if isinstance(here, PluginError):
            return here
        if isinstance(here, pulumi.RunError):
            return PluginError(str(here))
        here = here.__cause__ or here.__context__
    return why.__context__ or why


def details(error: PluginError) -> tuple[tuple[str, bytes], ...]:
    """What the engine is to know of a failure beside its text, as metadata of the answer."""
    if not isinstance(error, PartialError):
        return ()
    partial = provider_pb2.ErrorResourceInitFailed(
        id=error.resource_id,
        properties=PropertyValue.marshal_map(properties(error.state)),
        reasons=error.reasons,
    )
    if error.inputs is not None:
        partial.inputs.CopyFrom(PropertyValue.marshal_map(properties(error.inputs)))
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(partial)
    return (("grpc-status-details-bin", status.SerializeToString()),)


class Servicer(ProviderServicer):
    """The SDK's, with what it lacks: sentences, a removal's inputs, a component's options."""

    def __init__(self, provider: Provider, version: str, engine: str = "") -> None:
        super().__init__([], version, provider, engine)
        self._served = provider

    async def _removed(self, request: Any, context: grpc.aio.ServicerContext) -> Empty:
        """How the cluster is reached is in the inputs alone: the state holds no kubeconfig."""
        given = PropertyValue.unmarshal_map(request.old_inputs)
        known = PropertyValue.unmarshal_map(request.properties)
        await self._served.delete(
            DeleteRequest(request.urn, request.id, {**given, **known}, request.timeout)
        )
        return Empty()

    async def _constructed(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        _ASKED.set(request)
        filled(request.inputs)
        return await ProviderServicer.Construct(self, request, context)

    # Calls of the protocol, named as it names them.
    Construct = _in_a_sentence(_constructed)  # type: ignore[assignment]
    Invoke = _in_a_sentence(ProviderServicer.Invoke)
    Check = _in_a_sentence(ProviderServicer.Check)
    Diff = _in_a_sentence(ProviderServicer.Diff)
    Create = _in_a_sentence(ProviderServicer.Create)
    Read = _in_a_sentence(ProviderServicer.Read)
    Update = _in_a_sentence(ProviderServicer.Update)
    Delete = _in_a_sentence(_removed)


def asked() -> provider_pb2.ConstructRequest:
    """The request for the component that is made now, as it came."""
    return _ASKED.get()


def options_of(
    request: ConstructRequest, raw: provider_pb2.ConstructRequest
) -> pulumi.ResourceOptions:
    """The options of a component, with what the SDK leaves out of the request as it came."""
    found = request.options
    found.aliases = [_alias(it) for it in raw.aliases]
    found.deleted_with = DependencyResource(raw.deletedWith) if raw.deletedWith else None
    return found


def _alias(given: alias_pb2.Alias) -> str | pulumi.Alias:
    """As a program writes it. What its specification leaves out is what the component has now."""
    if given.urn:
        return given.urn
    spec = given.spec
    said: dict[str, Any] = {
        "name": spec.name,
        "type_": spec.type,
        "stack": spec.stack,
        "project": spec.project,
        "parent": spec.parentUrn,
    }
    said = {key: value for key, value in said.items() if value}
    return pulumi.Alias(**said, **({"parent": None} if spec.noParent else {}))


def main(provider: Provider, version: str) -> None:
    """Serve until the engine ends, at a free port of the loopback that it is told on stdout."""
    # The engine's way to end a plugin: at once, whatever cluster is waited for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    leave_with_parent()
    asyncio.run(_serve(Servicer(provider, version, engine_address())))


async def _serve(servicer: Servicer) -> None:
    server = grpc.aio.server(options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()
