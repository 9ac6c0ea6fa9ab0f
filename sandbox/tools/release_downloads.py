"""Official releases: downloaded, verified against their checksum, unpacked.

A machine that reaches package registries only must learn quickly that it cannot reach a
publisher. Connecting has a short time limit, and a host that failed is not tried again by the
same process. `KAI_FLEET_RELEASES=off` skips releases altogether.
"""

import bz2
import gzip
import hashlib
import os
import platform
import shutil
import tarfile
import tempfile
import time
import zlib
from pathlib import Path
from threading import Event
from typing import IO, Any, Final
from urllib.parse import urlsplit

from kai_fleet.cluster.kube.errors import short
from sandbox.tools.table import PROGRESS_SECONDS, Release, Say, ToolError

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 60.0
SWITCH: Final = "KAI_FLEET_RELEASES"

_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_unreachable: dict[str, str] = {}


class NoRelease(Exception):  # noqa: N818 - it is an answer, not a mistake
    """The release cannot be had from here, or does not fit; the text says why."""


def this_platform() -> str:
    """Such as `linux/amd64`, in Go's names."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}"


def fetch(title: str, release: Release, into: Path, say: Say, stopped: Event) -> None:
    """Put the release's files into the existing folder `into`.

    Raises NoRelease, or ToolError when what came is not what was pinned, or once it is `stopped`.
    """
    here = this_platform()
    if os.environ.get(SWITCH, "").lower() == "off":
        raise NoRelease(f"{SWITCH}=off")
    if here not in release.sums and not release.published:
        raise NoRelease(f"none with a known checksum for {here}")
    address = release.address(here)
    # The sum comes first: without one nothing is downloaded.
    expected = release.sums.get(here) or _published_sum(release, here)
    with tempfile.NamedTemporaryFile(prefix="kai-fleet-release-") as file:
        algorithm = {64: "sha256", 128: "sha512"}[len(expected)]
        found = _download(title, address, algorithm, file, say, stopped)
        if found != expected:
            raise ToolError(
                f"{title}: {address} is not the file that was pinned: its checksum is {found}, "
                f"pinned is {expected}. Nothing of it is used. If a proxy answers in the "
                f"publisher's place, set {SWITCH}=off to build from source."
            )
        for name, member in release.members.items():
            _unpack(Path(file.name), release.filled(member, here), address, into / name)


def _published_sum(release: Release, here: str) -> str:
    """The sum in the publisher's own checksum file, whose lines are `HEX  FILE`."""
    name = release.address(here).rsplit("/", 1)[1]
    address = release.filled(release.published, here)
    with _open(address) as answer:
        lines: list[str] = answer.text.splitlines()
    for line in lines:
        fields = line.split()
        if len(fields) == 2 and len(fields[0]) == 64 and fields[1].lstrip("*") == name:
            return fields[0].lower()
    raise NoRelease(f"{address} has no checksum of {name}")


def _download(
    title: str, address: str, algorithm: str, file: IO[bytes], say: Say, stopped: Event
) -> str:
    digest = hashlib.new(algorithm)
    received = 0
    reported = time.monotonic()
    with _open(address) as answer:
        say(f"{title}: downloading {address}")
        try:
            for block in answer.iter_content(1 << 18):
                if stopped.is_set():
                    raise ToolError(f"{title}: the download was stopped; start it again.")
                digest.update(block)
                file.write(block)
                received += len(block)
                if time.monotonic() - reported >= PROGRESS_SECONDS:
                    reported = time.monotonic()
                    say(f"{title}: {received >> 20} MiB downloaded")
        except OSError as error:
            raise NoRelease(f"{address} stopped after {received >> 20} MiB ({error})") from error
    file.flush()
    return digest.hexdigest()


def _open(address: str) -> Any:
    import requests  # loads slowly, and is seldom needed

    parts = urlsplit(address)
    host = parts.hostname or address
    if host in _unreachable:
        raise NoRelease(_unreachable[host])
    patience = (CONNECT_SECONDS, READ_SECONDS)
    plain = {"Accept-Encoding": "identity"}  # the sum is that of the file as it is
    try:
        answer = requests.get(address, headers=plain, timeout=patience, stream=True)
    except requests.RequestException as error:
        reason = getattr(error.args[0], "reason", error) if error.args else error
        _unreachable[host] = f"{host} cannot be reached: {short(reason)}"
        raise NoRelease(_unreachable[host]) from error
    if not answer.ok:  # about this file; another one of the same host may still be there
        raise NoRelease(f"{host} answers {answer.status_code} for {parts.path}")
    return answer


def _unpack(archive: Path, member: str, address: str, target: Path) -> None:
    """Without a member, the archive is the file itself, packed where its name ends with .bz2."""
    try:
        if address.endswith(".bz2"):
            with bz2.open(archive) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
        elif not member:
            shutil.copyfile(archive, target)
        else:
            with tarfile.open(archive) as contents, target.open("wb") as file:
                source = contents.extractfile(member)
                if source is None:  # a folder
                    raise KeyError(member)
                shutil.copyfileobj(source, file)
        target.chmod(0o755)
    except KeyError:
        raise NoRelease(f"{address} holds no file {member}") from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NoRelease(f"{address} cannot be unpacked: {error}") from error
