"""Tools that are already on PATH, taken only in a version that will do.

The versions that they tell are kept: asking each of them takes a second or so.
"""

import hashlib
import os
import re
import select
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

from sandbox.tools.table import PathCheck, Version

ANSWER_SECONDS: Final = 20.0
# Plugins want the engine's address and connect only when they have something to tell it.
_NO_ENGINE: Final = "127.0.0.1:1"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def find(name: str, check: PathCheck, cache: Path) -> tuple[Path, str] | None:
    """The first acceptable `name` on PATH, with its version.

    What lies in `cache` is passed over: it is our own, seen through a sandbox's PATH.
    """
    for path in _candidates(name, cache):
        version = known(cache, path, check)
        if check.accepts(numbers(version)):
            return path, version
    return None


def refused(name: str, check: PathCheck, cache: Path) -> list[str]:
    """Why what is on PATH is not used: one sentence for each. A companion goes with its tool."""
    low, below = (".".join(map(str, bound)) for bound in (check.oldest, check.below))
    return [
        f"{path} is {known(cache, path, check) or 'of no known version'}, "
        f"and {low} or newer, below {below}, is needed"
        for path in _candidates(name, cache)
        if not check.companion
    ]


def beside(name: str, other: Path, cache: Path) -> Path | None:
    """`name` on PATH, or in the folder where `other` really is."""
    found = next(_candidates(name, cache), None)
    neighbour = other.resolve().parent / name
    return found or (neighbour if os.access(neighbour, os.X_OK) else None)


def _candidates(name: str, cache: Path) -> Iterator[Path]:
    ours = cache.resolve()
    seen = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        real = Path(found).resolve() if found else None
        if found and real and real not in seen and not real.is_relative_to(ours):
            seen.add(real)
            yield Path(found)


def numbers(version: str) -> Version:
    """`1.34.4` → `(1, 34, 4)`; nothing for what tells no version."""
    return tuple(int(part) for part in version.split(".")) if version else ()


def known(folder: Path, tool: Path, check: PathCheck) -> str:
    """The version of a tool: as it was told when this very file was asked, or asked now.

    "" is asked again each time: a tool that tells none may be in the making.
    """
    try:
        real = tool.resolve()
        about = real.stat()
    except OSError:
        return told(tool, check)
    key = f"{real} {about.st_mtime_ns} {about.st_size}"
    kept = folder / f".version-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not kept.exists() or not kept.read_text():
        kept.write_text(told(tool, check))
    return kept.read_text()


@cache
def told(tool: Path, check: PathCheck) -> str:
    """The version that a tool tells, such as `1.34.4`; empty when it tells none."""
    command = [tool, *(check.ask or [_NO_ENGINE])]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                said = _said(process) if check.ask else _of_plugin(process)
            finally:
                process.kill()
    except (OSError, subprocess.SubprocessError, grpc.RpcError):
        return ""
    found = _VERSION.search(said)
    return found[0] if found else ""


def _said(process: subprocess.Popen[bytes]) -> str:
    return process.communicate(timeout=ANSWER_SECONDS)[0].decode(errors="replace")


def _of_plugin(process: subprocess.Popen[bytes]) -> str:
    """What a provider plugin answers, which only its own protocol tells."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    port = process.stdout.readline().decode(errors="replace").strip() if readable else ""
    if not port.isdigit():
        return ""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        asked = ResourceProviderStub(channel).GetPluginInfo
        return str(asked(Empty(), timeout=ANSWER_SECONDS, wait_for_ready=True).version)
