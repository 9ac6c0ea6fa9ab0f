"""The stand-in for Pulumi's Command provider: `python -m sandbox.providers.command`."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import provider_pb2

from kai_fleet.provider.errors import PluginError
from sandbox.providers import diff
from sandbox.providers.host import StandIn, answered, serve
from sandbox.providers.values import UNKNOWN, Properties, decode, encode, marked, plain

VERSION: Final = "1.2.1"
TOKEN: Final = "command:local:Command"
_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes: of a command's two streams, by its `logging`.
_SHOWN: Final = {
    None: {"stdout", "stderr"},
    "stdout": {"stdout"},
    "stderr": {"stderr"},
    "stdoutAndStderr": {"stdout", "stderr"},
    "none": set(),
}
_INPUTS: Final = ("create", "update", "delete", "environment", "logging", "triggers")


class CommandStandIn(StandIn):
    """Commands on this machine, run as their resource is created, updated and deleted."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("command", VERSION, engine)

    # Calls of the protocol, named as it names them.

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    @answered
    def Check(self, request: Any) -> Any:  # noqa: D102, N802
        token = request.urn.split("::")[2].rpartition("$")[2]
        given = plain(decode(request.news))
        unserved = [key for key in given if key not in _INPUTS and given[key] is not None]
        if token != TOKEN or unserved:
            what = f"The input {unserved[0]} of a command" if unserved else f"The type {token}"
            raise self.unserved(what)
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def Diff(self, request: Any) -> Any:  # noqa: D102, N802
        old, new = plain(decode(request.olds)), plain(decode(request.news))
        old = {key: value for key, value in old.items() if key not in _OUTPUTS}
        answer = diff.response(None, list(diff.changes(old, old, new)), list(request.ignoreChanges))
        for key, detail in answer.detailedDiff.items():
            if key.startswith("triggers"):  # the one input that makes a new command
                detail.kind = provider_pb2.PropertyDiff.UPDATE_REPLACE
                answer.replaces.append(key)
        return answer

    @answered
    def Create(self, request: Any) -> Any:  # noqa: D102, N802
        news = decode(request.properties)
        outputs = _state(news, UNKNOWN, UNKNOWN)
        if not request.preview:
            outputs = self._ran(request.urn, "create", news, {})
        name = f"{request.urn.split('::', 3)[3]}{secrets.token_hex(4)}"
        return provider_pb2.CreateResponse(id=name, properties=encode(outputs))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: D102, N802
        # There is nothing to look at: what a command did is not known here.
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    @answered
    def Update(self, request: Any) -> Any:  # noqa: D102, N802
        news, olds = decode(request.news), decode(request.olds)
        outputs = _state(news, UNKNOWN, UNKNOWN)
        if not request.preview:
            verb = "update" if plain(news).get("update") else "create"
            outputs = self._ran(request.urn, verb, news, plain(olds))
        return provider_pb2.UpdateResponse(properties=encode(outputs))

    @answered
    def Delete(self, request: Any) -> Any:  # noqa: D102, N802
        olds = decode(request.properties)
        self._ran(request.urn, "delete", olds, plain(olds))
        return Empty()

    def _ran(self, urn: str, verb: str, inputs: Properties, last: dict[str, Any]) -> Properties:
        """The state after the verb's command; without one, nothing runs and the outputs stay."""
        given = plain(inputs)
        outputs = {stream: str(last.get(stream) or "") for stream in _OUTPUTS}
        if command := given.get(verb):
            outputs = self._run(urn, str(command), given, outputs)
        return _state(inputs, **outputs)

    def _run(
        self, urn: str, command: str, given: dict[str, Any], last: dict[str, str]
    ) -> dict[str, str]:
        environment = {**os.environ, **(given.get("environment") or {})}
        named = {f"PULUMI_COMMAND_{stream.upper()}": text for stream, text in last.items()}
        environment |= {name: text for name, text in named.items() if text}
        heard: list[tuple[str, str]] = []  # stream and line, as they came

        def collect(stream: str, lines: Any) -> None:
            for line in lines:
                heard.append((stream, line))
                if stream in _SHOWN[given.get("logging")]:
                    self.log(line.rstrip("\n"), urn)

        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        pipes = (("stdout", process.stdout), ("stderr", process.stderr))
        readers = [threading.Thread(target=collect, args=pipe) for pipe in pipes]
        for reader in readers:
            reader.start()
        while process.poll() is None:
            if self.cancelled.wait(0.05):
                process.kill()
        for reader in readers:
            reader.join()
        if process.returncode != 0:
            code = process.returncode
            ended = f"exit status {code}" if code > 0 else f"signal: {-code}"
            said = "".join(line for _, line in heard)
            raise PluginError(f'{ended}: running "{command}":\n{said}')
        return {
            stream: "".join(line for of, line in heard if of == stream).removesuffix("\n")
            for stream in _OUTPUTS
        }


def _state(inputs: Properties, stdout: str, stderr: str) -> Properties:
    """The state: the inputs and both outputs, which are secret when any input is."""
    kept = {key: value for key, value in inputs.items() if key not in _OUTPUTS}
    secret = any(value.contains_secret() for value in kept.values())
    for key, text in (("stdout", stdout), ("stderr", stderr)):
        kept[key] = marked(text).with_secret(secret and text != UNKNOWN)
    return kept


if __name__ == "__main__":
    serve(CommandStandIn)
