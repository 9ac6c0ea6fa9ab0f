"""The stand-in for Pulumi's Command provider: `python -m sandbox.providers.command`."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pulumi.runtime.proto import provider_pb2

from kai_fleet.provider.errors import PluginError
from sandbox.providers import diff
from sandbox.providers.host import StandIn, name_of, serve
from sandbox.providers.values import UNKNOWN, Properties, decode, marked, plain

VERSION: Final = "1.2.1"
TOKEN: Final = "command:local:Command"
_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes, by `logging`: both streams, none of them, or else the one of that name.
_SHOWN: Final = {None: _OUTPUTS, "stdoutAndStderr": _OUTPUTS, "none": ()}
_INPUTS: Final = ("create", "update", "delete", "environment", "logging", "triggers")


class CommandStandIn(StandIn):
    """Commands on this machine, run as their resource is created, updated and deleted."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("command", VERSION, engine)

    def resources(self, token: str) -> CommandStandIn:  # noqa: D102
        if token != TOKEN:
            raise self.unserved(f"The type {token}")
        return self

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    def check(self, request: Any) -> Any:
        """The inputs as they are, if all of them are served."""
        for key, value in decode(request.news).items():
            if key not in _INPUTS and value.value is not None:
                raise self.unserved(f"The input {key} of a command")
        return provider_pb2.CheckResponse(inputs=request.news)

    def diff(self, request: Any) -> Any:
        """What differs between the inputs of the state and new ones."""
        old, new = plain(decode(request.olds)), plain(decode(request.news))
        old = {key: value for key, value in old.items() if key not in _OUTPUTS}
        answer = diff.response(None, list(diff.changes(old, old, new)), list(request.ignoreChanges))
        for key, detail in answer.detailedDiff.items():
            if key.startswith("triggers"):  # the one input that makes a new command
                detail.kind = provider_pb2.PropertyDiff.UPDATE_REPLACE
                answer.replaces.append(key)
        return answer

    def create(self, request: Any, given: Properties) -> tuple[str, Properties]:
        """Run the command `create`."""
        made = f"{name_of(request.urn)}{secrets.token_hex(4)}"
        return made, self._ran(request, "create", given, {})

    def read(self, request: Any) -> tuple[str, Properties, Properties]:
        """As it was: what a command did is not known here."""
        return request.id, decode(request.properties), decode(request.inputs)

    def update(self, request: Any, given: Properties) -> Properties:
        """Run the command `update`, or `create` where there is none."""
        verb = "update" if plain(given).get("update") else "create"
        return self._ran(request, verb, given, plain(decode(request.olds)))

    def delete(self, request: Any) -> None:
        """Run the command `delete`."""
        given = decode(request.properties)
        self._ran(request, "delete", given, plain(given))

    def _ran(self, request: Any, verb: str, inputs: Properties, last: dict[str, Any]) -> Properties:
        """The state after the verb's command; without one, nothing runs and the outputs stay."""
        if getattr(request, "preview", False):
            return _state(inputs, UNKNOWN, UNKNOWN)
        given = plain(inputs)
        outputs = {stream: str(last.get(stream) or "") for stream in _OUTPUTS}
        if command := given.get(verb):
            outputs = self._run(request.urn, str(command), given, outputs)
        return _state(inputs, **outputs)

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
                    self.log(line.rstrip("\n"), urn)

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


def _state(inputs: Properties, stdout: str, stderr: str) -> Properties:
    """The state: the inputs and both outputs, which are never secret, whatever was printed."""
    kept = {key: value for key, value in inputs.items() if key not in _OUTPUTS}
    return kept | {"stdout": marked(stdout), "stderr": marked(stderr)}


if __name__ == "__main__":
    serve(CommandStandIn)
