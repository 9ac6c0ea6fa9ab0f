"""A stand-in for Pulumi's Command plugin, which no package registry has.

`python -m sandbox.command_plugin ENGINE` runs local commands as the official plugin does, failures
included, and serves nothing else.
"""

import os
import secrets
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import (
    engine_pb2,
    engine_pb2_grpc,
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
)
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider.process import engine_address, serve
from kai_fleet.provider.values import plain

VERSION: Final = "1.2.1"
_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes, by `logging`: both streams, none of them, or else the one of that name.
_SHOWN: Final = {None: _OUTPUTS, "stdoutAndStderr": _OUTPUTS, "none": ()}
_INPUTS: Final = ("create", "update", "delete", "environment", "logging", "triggers")
_WORKERS: Final = 64  # one operation each; one that waits holds its thread


class CommandPlugin(provider_pb2_grpc.ResourceProviderServicer):
    """Commands on this machine, run as their resource is created, updated and deleted.

    Calls of the protocol are named as it names them.
    """

    def __init__(self, engine: str) -> None:
        self._cancelled = threading.Event()
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine))

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return plugin_pb2.PluginInfo(version=VERSION)

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The inputs as they are, if all of them are served."""
        given = {key for key, it in plain(request.news).items() if it is not None}
        if more := sorted(given - set(_INPUTS)):
            fail(
                context,
                f"The input {more[0]} of a command is not served by kai-fleet's stand-in for"
                " Pulumi's command provider: install the plugin, `pulumi plugin install resource"
                f" command {VERSION}`.",
            )
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Which inputs are others; another trigger makes a new command."""
        old, new = plain(request.olds), plain(request.news)
        ignored = set(request.ignoreChanges)
        changed = [key for key in _INPUTS if old.get(key) != new.get(key) and key not in ignored]
        answer = provider_pb2.DiffResponse
        return answer(
            changes=answer.DIFF_SOME if changed else answer.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key == "triggers"],
        )

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run the command `create`."""
        name = request.urn.split("::", 3)[3]
        state = self._ran(request, context, "create", request.properties, {})
        return provider_pb2.CreateResponse(id=f"{name}{secrets.token_hex(4)}", properties=state)

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        """As it was: what a command did is not known here."""
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run the command `update`, or `create` where there is none."""
        given, last = request.news, plain(request.olds)
        verb = "update" if plain(given).get("update") else "create"
        state = self._ran(request, context, verb, given, last)
        return provider_pb2.UpdateResponse(properties=state)

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run the command `delete`."""
        given = request.properties
        self._ran(request, context, "delete", given, plain(given))
        return Empty()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        self._cancelled.set()
        return Empty()

    def _ran(
        self, request: Any, context: Any, verb: str, inputs: Struct, last: dict[str, Any]
    ) -> Any:
        """The state after the verb's command; without one, nothing runs and the outputs stay.

        Outputs are never secret, whatever was printed.
        """
        outputs = {stream: str(last.get(stream) or "") for stream in _OUTPUTS}
        given = plain(inputs)
        if getattr(request, "preview", False):
            outputs = dict.fromkeys(_OUTPUTS, UNKNOWN)
        elif command := given.get(verb):
            outputs = self._run(request.urn, context, str(command), given, outputs)
        inputs.update(outputs)
        return inputs

    def _run(
        self, urn: str, context: Any, command: str, given: dict[str, Any], last: dict[str, str]
    ) -> dict[str, str]:
        environment = {**os.environ, **(given.get("environment") or {})}
        named = {f"PULUMI_COMMAND_{stream.upper()}": text for stream, text in last.items()}
        environment |= {name: text for name, text in named.items() if text}
        shown = _SHOWN.get(logging := given.get("logging"), (logging,))
        heard: list[tuple[str, str]] = []  # stream and line, as they came

        def collect(stream: str, lines: Iterable[str]) -> None:
            for line in lines:
                heard.append((stream, line))
                if stream in shown:
                    self._log(line.rstrip("\n"), urn)

        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process, ThreadPoolExecutor(len(_OUTPUTS)) as readers:
            for stream in _OUTPUTS:
                readers.submit(collect, stream, getattr(process, stream))
            while process.poll() is None:
                if self._cancelled.wait(0.05):
                    process.kill()
        if (code := process.returncode) != 0:
            ended = f"exit status {code}" if code > 0 else f"signal: {-code}"
            said = "".join(line for _, line in heard)
            fail(context, f'{ended}: running "{command}":\n{said}')
        return {
            stream: "".join(line for of, line in heard if of == stream).removesuffix("\n")
            for stream in _OUTPUTS
        }

    def _log(self, text: str, urn: str) -> None:
        """Show a text at the resource; an engine that is gone is no reason to fail."""
        request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn)
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            return


def fail(context: grpc.ServicerContext, text: str) -> None:
    """End the call with a sentence for the user."""
    context.abort(grpc.StatusCode.UNKNOWN, text)


def main() -> None:
    """Serve until the engine ends."""
    plugin = CommandPlugin(engine_address())
    serve(plugin, provider_pb2_grpc.add_ResourceProviderServicer_to_server, _WORKERS)


if __name__ == "__main__":
    main()
