"""A stand-in for Pulumi's Command plugin, which no package registry has.

`python -m sandbox.command_plugin ENGINE` runs local commands as the official plugin does, failures
included, and serves nothing else.
"""

import asyncio
import os
import secrets
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from pulumi.provider.experimental import provider
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider import PluginError
from kai_fleet.provider.serving import (
    Values,
    engine_address,
    property_values,
    python_properties,
    serve,
)

VERSION: Final = "1.2.1"
_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes, by `logging`: both streams, none of them, or else the one of that name.
_SHOWN: Final = {None: _OUTPUTS, "stdoutAndStderr": _OUTPUTS, "none": ()}
_INPUTS: Final = ("create", "update", "delete", "environment", "logging", "triggers")


class CommandPlugin(provider.Provider):
    """Run commands on this machine as their resource is created, updated and deleted."""

    def __init__(self, engine: str) -> None:
        self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(engine))
        self.cancelled = threading.Event()

    async def configure(self, request: provider.ConfigureRequest) -> provider.ConfigureResponse:
        """Take no output values: the SDK cannot read one that is unknown."""
        return provider.ConfigureResponse(accept_secrets=True, supports_preview=True)

    async def check(self, request: provider.CheckRequest) -> provider.CheckResponse:
        """Take the inputs as they are, if all of them are served."""
        given = {
            key for key, value in python_properties(request.new_inputs).items() if value is not None
        }
        if more := sorted(given - set(_INPUTS)):
            raise PluginError(
                f"The input {more[0]} of a command is not served by kai-fleet's stand-in for"
                " Pulumi's command provider: install the plugin, `pulumi plugin install resource"
                f" command {VERSION}`."
            )
        return provider.CheckResponse(request.new_inputs, [])

    async def diff(self, request: provider.DiffRequest) -> provider.DiffResponse:
        """Name the inputs that differ; another trigger makes a new command."""
        old, new = python_properties(request.old_state), python_properties(request.new_inputs)
        ignored = set(request.ignore_changes)
        changed = [key for key in _INPUTS if old.get(key) != new.get(key) and key not in ignored]
        replaces = [key for key in changed if key == "triggers"]
        return provider.DiffResponse(bool(changed), replaces, diffs=changed)

    async def create(self, request: provider.CreateRequest) -> provider.CreateResponse:
        """Run the command `create`."""
        name = request.urn.split("::", 3)[3]
        state = await self._run_verb(request.urn, "create", request.properties, {}, request.preview)
        return provider.CreateResponse(f"{name}{secrets.token_hex(4)}", state)

    async def read(self, request: provider.ReadRequest) -> provider.ReadResponse:
        """Return the old state: nothing shows what a command did."""
        return provider.ReadResponse(request.resource_id, request.properties, request.inputs)

    async def update(self, request: provider.UpdateRequest) -> provider.UpdateResponse:
        """Run the command `update`, or `create` where there is none."""
        verb = "update" if python_properties(request.news).get("update") else "create"
        last = python_properties(request.olds)
        state = await self._run_verb(request.urn, verb, request.news, last, request.preview)
        return provider.UpdateResponse(state)

    async def delete(self, request: provider.DeleteRequest) -> None:
        """Run the command `delete`."""
        given = request.properties
        await self._run_verb(request.urn, "delete", given, python_properties(given), preview=False)

    async def cancel(self) -> None:
        """Kill the running commands."""
        self.cancelled.set()

    async def _run_verb(
        self, urn: str, verb: str, inputs: Values, last: dict[str, Any], preview: bool
    ) -> Values:
        """The state after the verb's command; without one, nothing runs and the outputs stay.

        Outputs are never secret, whatever was printed.
        """
        outputs = {stream: str(last.get(stream) or "") for stream in _OUTPUTS}
        given = python_properties(inputs)
        if preview:
            outputs = dict.fromkeys(_OUTPUTS, UNKNOWN)
        elif command := given.get(verb):
            outputs = await asyncio.to_thread(self._run, urn, str(command), given, outputs)
        return {**inputs, **property_values(outputs)}

    def _run(
        self, urn: str, command: str, given: dict[str, Any], last: dict[str, str]
    ) -> dict[str, str]:
        environment = {**os.environ, **(given.get("environment") or {})}
        named = {f"PULUMI_COMMAND_{stream.upper()}": text for stream, text in last.items()}
        environment |= {name: text for name, text in named.items() if text}
        shown = _SHOWN.get(logging := given.get("logging"), (logging,))
        printed: list[tuple[str, str]] = []  # stream and line, as they came

        def collect(stream: str, lines: Iterable[str]) -> None:
            for line in lines:
                printed.append((stream, line))
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
            printed_text = "".join(line for _, line in printed)
            raise PluginError(f'{ended}: running "{command}":\n{printed_text}')
        return {
            stream: "".join(line for of, line in printed if of == stream).removesuffix("\n")
            for stream in _OUTPUTS
        }

    def _log(self, text: str, urn: str) -> None:
        """Show a text at the resource; an engine that is gone is no reason to fail."""
        # Ephemeral: shown as it comes, and not once more at the end.
        request = engine_pb2.LogRequest(
            severity=engine_pb2.INFO, message=text, urn=urn, ephemeral=True
        )
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            return


def main() -> None:
    """Serve until the engine ends."""
    serve(CommandPlugin(engine_address()), VERSION)


if __name__ == "__main__":
    main()
