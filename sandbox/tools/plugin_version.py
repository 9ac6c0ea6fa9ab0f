"""The version of a Pulumi provider plugin, which only its own protocol tells."""

from __future__ import annotations

import select
import subprocess
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

ANSWER_SECONDS: Final = 20.0
# Plugins want the engine's address and connect only when they have something to tell it.
_NO_ENGINE: Final = "127.0.0.1:1"


def ask(plugin: Path) -> str:
    """Start the plugin, ask its version, stop it. Empty when it gives no answer."""
    try:
        process = subprocess.Popen(
            [plugin, _NO_ENGINE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        return _version(process)
    finally:
        process.kill()
        process.wait()


def _version(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    port = process.stdout.readline().decode(errors="replace").strip() if readable else ""
    if not port.isdigit():
        return ""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            answer = ResourceProviderStub(channel).GetPluginInfo(
                Empty(), timeout=ANSWER_SECONDS, wait_for_ready=True
            )
        except grpc.RpcError:
            return ""
    return str(answer.version)
