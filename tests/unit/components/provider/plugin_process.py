"""The product's own plugin as the engine starts it, asked over gRPC with plain values."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from kai_fleet.marks import SECRET_MARK, SIGNATURE
from kai_fleet.names import QUEUES
from kai_fleet.provider.values import python_values, struct
from kai_fleet_cli.stack_file.reading import ROOT

Json = dict[str, Any]
LAUNCHER = ROOT / ".venv" / "bin" / "pulumi-resource-kai-fleet"


class Plugin:
    """Its answers in plain values; `answer` is the last one as it came."""

    urn = f"urn:pulumi:stack::project::kai-fleet:index:QueueTree${QUEUES}::ml"

    def __init__(self, stub: Any, process: subprocess.Popen[str]) -> None:
        self._stub, self.process = stub, process
        self.answer: Any = None

    def create(self, inputs: Json, preview: bool = False) -> tuple[str, Json]:
        self._ask("Create", provider_pb2.CreateRequest, properties=inputs, preview=preview)
        return self.answer.id, python_values(self.answer.properties)

    def update(self, identity: str, olds: Json, news: Json, preview: bool = False) -> Json:
        self._ask(
            "Update", provider_pb2.UpdateRequest, id=identity, olds=olds, news=news, preview=preview
        )
        return python_values(self.answer.properties)

    def diff(self, olds: Json, news: Json) -> tuple[dict[str, int], list[str]]:
        self._ask("Diff", provider_pb2.DiffRequest, olds=olds, news=news)
        kinds = {path: item.kind for path, item in self.answer.detailedDiff.items()}
        assert self.answer.changes == (2 if kinds else 1)  # DIFF_SOME, DIFF_NONE
        return kinds, list(self.answer.replaces)

    def read(self, identity: str, state: Json, inputs: Json) -> tuple[str, Json, Json]:
        self._ask("Read", provider_pb2.ReadRequest, id=identity, properties=state, inputs=inputs)
        return (
            self.answer.id,
            python_values(self.answer.properties),
            python_values(self.answer.inputs),
        )

    def delete(self, identity: str, state: Json, inputs: Json) -> None:
        request = provider_pb2.DeleteRequest
        self._ask("Delete", request, id=identity, properties=state, old_inputs=inputs)

    def invoke(self, function: str, arguments: Json) -> Any:
        """A Struct: what is secret in it has the mark of that."""
        request = provider_pb2.InvokeRequest(tok=function, args=struct(arguments))
        return getattr(self._stub.Invoke(request), "return")

    def _ask(self, call: str, request: Any, **given: Any) -> None:
        sent = {
            key: struct(entry) if isinstance(entry, dict) else entry for key, entry in given.items()
        }
        self.answer = getattr(self._stub, call)(request(urn=self.urn, **sent))

    @staticmethod
    def fails(call: Any, *arguments: Any) -> grpc.RpcError:
        try:
            call(*arguments)
        except grpc.RpcError as error:
            return error
        raise AssertionError("the call succeeded")


def secret(value: Any) -> Json:
    """A plain value with the protocol's mark of a secret."""
    return {SIGNATURE: SECRET_MARK, "value": value}


def reported(error: Any) -> str:
    """What the user reads of a failure."""
    return str(error.details())


def partial(error: Any) -> Any:
    """What the engine keeps of a resource that was made in part."""
    from pulumi.runtime.proto import status_pb2

    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    found = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(details).details[0].Unpack(found)
    return found


@contextlib.contextmanager
def started(**variables: str) -> Iterator[Plugin]:
    """By its launcher, with more variables in its environment, until the test is through."""
    with running([LAUNCHER, "127.0.0.1:1"], cwd="/", env={**os.environ, **variables}) as (
        stub,
        process,
    ):
        yield Plugin(stub, process)


@contextlib.contextmanager
def running(command: Sequence[Any], **how: Any) -> Iterator[tuple[Any, subprocess.Popen[str]]]:
    """The stub of any provider plugin, and its process."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **how)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield provider_pb2_grpc.ResourceProviderStub(channel), process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()
