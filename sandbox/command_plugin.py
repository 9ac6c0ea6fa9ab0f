"""A stand-in for Pulumi's Command plugin, which no package registry has.

`python -m sandbox.command_plugin ENGINE` runs local commands as the official plugin does, failures
included, and serves nothing else.
"""

import asyncio
import os
import secrets
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider import PluginError
from kai_fleet.provider.process import Servicer, answering, engine_address, serve_provider
from kai_fleet.provider.values import plain

VERSION: Final = "1.2.1"
_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes, by `logging`: both streams, none of them, or else the one of that name.
_SHOWN: Final = {None: _OUTPUTS, "stdoutAndStderr": _OUTPUTS, "none": ()}
_INPUTS: Final = ("create", "update", "delete", "environment", "logging", "triggers")


class CommandPlugin(Servicer):
    """Commands on this machine, run as their resource is created, updated and deleted."""

    def __init__(self, engine: str) -> None:
        super().__init__(VERSION)
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine))

    @answering
    def Check(self, request: Any) -> Any:  # noqa: N802
        """The inputs as they are, if all of them are served."""
        given = {key for key, it in plain(request.news).items() if it is not None}
        if more := sorted(given - set(_INPUTS)):
            raise PluginError(
                f"The input {more[0]} of a command is not served by kai-fleet's stand-in for"
                " Pulumi's command provider: install the plugin, `pulumi plugin install resource"
                f" command {VERSION}`."
            )
        return provider_pb2.CheckResponse(inputs=request.news)

    @answering
    def Diff(self, request: Any) -> Any:  # noqa: N802
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

    @answering
    def Create(self, request: Any) -> Any:  # noqa: N802
        """Run the command `create`."""
        name = request.urn.split("::", 3)[3]
        state = self._ran(request, "create", request.properties, {})
        return provider_pb2.CreateResponse(id=f"{name}{secrets.token_hex(4)}", properties=state)

    @answering
    def Read(self, request: Any) -> Any:  # noqa: N802
        """As it was: what a command did is not known here."""
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    @answering
    def Update(self, request: Any) -> Any:  # noqa: N802
        """Run the command `update`, or `create` where there is none."""
        given, last = request.news, plain(request.olds)
        verb = "update" if plain(given).get("update") else "create"
        state = self._ran(request, verb, given, last)
        return provider_pb2.UpdateResponse(properties=state)

    @answering
    def Delete(self, request: Any) -> Any:  # noqa: N802
        """Run the command `delete`."""
        given = request.properties
        self._ran(request, "delete", given, plain(given))
        return Empty()

    def _ran(self, request: Any, verb: str, inputs: Struct, last: dict[str, Any]) -> Any:
        """The state after the verb's command; without one, nothing runs and the outputs stay.

        Outputs are never secret, whatever was printed.
        """
        outputs = {stream: str(last.get(stream) or "") for stream in _OUTPUTS}
        given = plain(inputs)
        if getattr(request, "preview", False):
            outputs = dict.fromkeys(_OUTPUTS, UNKNOWN)
        elif command := given.get(verb):
            outputs = self._run(request.urn, str(command), given, outputs)
        inputs.update(outputs)
        return inputs

    def _run(
        self, urn: str, command: str, given: dict[str, Any], last: dict[str, str]
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
                if self.cancelled.wait(0.05):
                    process.kill()
        if (code := process.returncode) != 0:
            ended = f"exit status {code}" if code > 0 else f"signal: {-code}"
            said = "".join(line for _, line in heard)
            raise PluginError(f'{ended}: running "{command}":\n{said}')
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


def main() -> None:
    """Serve until the engine ends."""
    asyncio.run(serve_provider(CommandPlugin(engine_address())))


if __name__ == "__main__":
    main()
