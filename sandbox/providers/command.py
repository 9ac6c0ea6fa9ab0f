"""The stand-in for Pulumi's Command provider: `python -m sandbox.providers.command`."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty

from provider import wire
from provider.plugin import PluginError, answered, engine_address, serve
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN, Secret

from . import diff
from .kinds import of_urn
from .naming import urn_name
from .standin import StandIn

VERSION: Final = "1.2.1"
TOKEN: Final = "command:local:Command"

_OUTPUTS: Final = ("stdout", "stderr")
# What is shown as it comes: of a command's two streams, by its `logging`.
_SHOWN: Final = {
    "stdout": {"stdout"},
    "stderr": {"stderr"},
    "stdoutAndStderr": {"stdout", "stderr"},
    "none": set(),
}
_INPUTS: Final = frozenset(
    {
        "addPreviousOutputInEnv",
        "create",
        "delete",
        "dir",
        "environment",
        "interpreter",
        "logging",
        "stdin",
        "triggers",
        "update",
    }
)


class CommandPlugin(StandIn):
    """Commands on this machine, run as their resource is created, updated and deleted."""

    def __init__(self, engine: str = "") -> None:
        super().__init__("command", VERSION, engine)

    # Calls of the protocol, named as it names them.

    @answered
    def CheckConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.CheckResponse(inputs=request.news)

    @answered
    def DiffConfig(self, request: Any) -> Any:  # noqa: D102, N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @answered
    def Configure(self, request: Any) -> Any:  # noqa: D102, N802
        self.accepts_secrets = request.acceptSecrets
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptOutputs=True
        )

    @answered
    def Check(self, request: Any) -> Any:  # noqa: D102, N802
        if of_urn(request.urn) != TOKEN:
            raise PluginError(self._unserved(f"type {of_urn(request.urn)}"))
        news = wire.decode(request.news)
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[
                provider_pb2.CheckFailure(property=name, reason=reason)
                for name, reason in _failures(wire.plain(news))
            ],
        )

    @answered
    def Diff(self, request: Any) -> Any:  # noqa: D102, N802
        olds = wire.plain(wire.decode(request.olds))
        old = {key: value for key, value in olds.items() if key not in _OUTPUTS}
        new = wire.plain(wire.decode(request.news))
        found = list(diff.changes(old, old, new))
        return diff.response(
            found, [("triggers",)], list(request.ignoreChanges), delete_first=False
        )

    @answered
    def Create(self, request: Any) -> Any:  # noqa: D102, N802
        news = wire.decode(request.properties)
        resource_id = f"{urn_name(request.urn)}{secrets.token_hex(4)}"
        if request.preview:
            outputs = _state(news, UNKNOWN, UNKNOWN)
        else:
            outputs = self._ran(request.urn, wire.plain(news.get("create")), news, {})
        return provider_pb2.CreateResponse(
            id=resource_id, properties=wire.encode(outputs, self.accepts_secrets)
        )

    @answered
    def Read(self, request: Any) -> Any:  # noqa: D102, N802
        # There is nothing to look at: what a command did is not known here.
        return provider_pb2.ReadResponse(
            id=request.id, properties=request.properties, inputs=request.inputs
        )

    @answered
    def Update(self, request: Any) -> Any:  # noqa: D102, N802
        news, olds = wire.decode(request.news), wire.decode(request.olds)
        if request.preview:
            outputs = _state(news, UNKNOWN, UNKNOWN)
        else:
            command = wire.plain(news.get("update") or news.get("create"))
            outputs = self._ran(request.urn, command, news, olds)
        return provider_pb2.UpdateResponse(properties=wire.encode(outputs, self.accepts_secrets))

    @answered
    def Delete(self, request: Any) -> Any:  # noqa: D102, N802
        olds = wire.decode(request.properties)
        self._ran(request.urn, wire.plain(olds.get("delete")), olds, olds)
        return Empty()

    def _ran(
        self, urn: str, command: str | None, inputs: dict[str, Any], before: dict[str, Any]
    ) -> dict[str, Any]:
        """The state after `command`; without one, nothing runs and the outputs stay."""
        given, last = wire.plain(inputs), wire.plain(before)
        stdout, stderr = str(last.get("stdout") or ""), str(last.get("stderr") or "")
        if command:
            stdout, stderr = self._run(urn, command, given, stdout, stderr)
        return _state(inputs, stdout, stderr)

    def _run(
        self, urn: str, command: str, given: dict[str, Any], stdout: str, stderr: str
    ) -> tuple[str, str]:
        environment = {**os.environ, **(given.get("environment") or {})}
        if given.get("addPreviousOutputInEnv") is not False:
            # Only what there is: an empty output leaves no variable.
            for key, text in (("STDOUT", stdout), ("STDERR", stderr)):
                if text:
                    environment[f"PULUMI_COMMAND_{key}"] = text
        arguments = [*(given.get("interpreter") or ["/bin/sh", "-c"]), command]
        try:
            process = subprocess.Popen(
                arguments,
                cwd=given.get("dir"),
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise PluginError(f"the command cannot start: {error}") from None
        shown = _SHOWN[given.get("logging") or "stdoutAndStderr"]
        outputs: dict[str, list[str]] = {"stdout": [], "stderr": []}
        complaint: list[str] = []

        def collect(name: str, stream: Any) -> None:
            for line in stream:
                outputs[name].append(line)
                if name in shown or name == "stderr":
                    complaint.append(line)
                if name in shown:
                    self.log(line.rstrip("\n"), urn, passing=True)

        readers = [
            threading.Thread(target=collect, args=pair, daemon=True)
            for pair in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for reader in readers:
            reader.start()
        self._feed(process, str(given.get("stdin") or ""))
        self._wait(process)
        for reader in readers:
            reader.join()
        if process.returncode != 0:
            raise PluginError(_failure(process.returncode, "".join(complaint)))
        return "".join(outputs["stdout"]).removesuffix("\n"), "".join(
            outputs["stderr"]
        ).removesuffix("\n")

    @staticmethod
    def _feed(process: subprocess.Popen[str], text: str) -> None:
        assert process.stdin is not None
        try:
            with process.stdin as stdin:
                stdin.write(text)
        except BrokenPipeError:
            # A command need not read what it is given.
            return

    def _wait(self, process: subprocess.Popen[str]) -> None:
        while True:
            try:
                process.wait(timeout=0.5)
                return
            except subprocess.TimeoutExpired:
                if self.cancelled.is_set():
                    process.kill()


def _failures(given: dict[str, Any]) -> list[tuple[str, str]]:
    """(property, failure) pairs for inputs that this stand-in does not know."""
    found = [
        (key, "is not served by this stand-in: use the official plugin")
        for key in given
        if key not in _INPUTS and given[key] is not None
    ]
    logging = given.get("logging")
    if isinstance(logging, str) and logging not in _SHOWN:
        found.append(("logging", f"is {logging!r}: write one of {', '.join(_SHOWN)}"))
    return found


def _state(inputs: dict[str, Any], stdout: Any, stderr: Any) -> dict[str, Any]:
    """The state: the inputs and both outputs, which are secret when any input is."""
    kept = {key: value for key, value in inputs.items() if key not in _OUTPUTS}
    for key, value in (("stdout", stdout), ("stderr", stderr)):
        kept[key] = Secret(value) if wire.has_secret(kept) else value
    return kept


def _failure(code: int, output: str) -> str:
    # Neither the command nor a stdout that is not shown: both may hold secrets.
    ended = f"exit status {code}" if code >= 0 else f"signal {-code}"
    return f"the command ended with {ended}:\n{output}".rstrip().rstrip(":")


def main() -> None:
    """Serves until the engine ends."""
    serve(CommandPlugin(engine_address(sys.argv[1:])))


if __name__ == "__main__":
    main()
