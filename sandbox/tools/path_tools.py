"""Tools that are already on PATH, used only in an accepted version.

Their versions are cached: to ask each of them takes a second or so.
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
# Plugins take the engine's address, and connect only when they have something to log.
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
    """`1.34.4` → `(1, 34, 4)`; empty for an unknown version."""
    return tuple(int(part) for part in version.split(".")) if version else ()


def known(folder: Path, tool: Path, check: PathCheck) -> str:
    """The version of a tool: from the cache for this very file, else from the tool.

    "" is never cached: a tool without a version may be half written.
    """
    try:
        real = tool.resolve()
        about = real.stat()
    except OSError:
        return ask_version(tool, check)
    key = f"{real} {about.st_mtime_ns} {about.st_size}"
    kept = folder / f".version-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not kept.exists() or not kept.read_text():
        kept.write_text(ask_version(tool, check))
    return kept.read_text()


@cache
def ask_version(tool: Path, check: PathCheck) -> str:
    """The version that a tool reports, such as `1.34.4`; empty when it reports none."""
    command = [tool, *(check.ask or [_NO_ENGINE])]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                output = _output(process) if check.ask else _plugin_version(process)
            finally:
                process.kill()
    except (OSError, subprocess.SubprocessError, grpc.RpcError):
        return ""
    found = _VERSION.search(output)
    return found[0] if found else ""


def _output(process: subprocess.Popen[bytes]) -> str:
    return process.communicate(timeout=ANSWER_SECONDS)[0].decode(errors="replace")


def _plugin_version(process: subprocess.Popen[bytes]) -> str:
    """The version of a provider plugin, by its own protocol."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
    port = process.stdout.readline().decode(errors="replace").strip() if readable else ""
    if not port.isdigit():
        return ""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        get_info = ResourceProviderStub(channel).GetPluginInfo
        return str(get_info(Empty(), timeout=ANSWER_SECONDS, wait_for_ready=True).version)
