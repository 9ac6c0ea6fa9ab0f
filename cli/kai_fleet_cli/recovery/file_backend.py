"""What a file backend (`file://…`) keeps of a stack: its state, its lock, older copies.

Read only: what is in it is written by Pulumi alone. `environment` is added to this process's own.
"""

import json
import os
import re
import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import psutil

from kai_fleet_cli.stack_file.reading import PROJECT, ROOT

# The engine's words: "…: created by NAME@HOST (pid 12) at 2026-11-21T15:22:18Z".
_HOLDER: Final = re.compile(r"created by (\S+)@(\S+) \(pid (\d+)\) at (\S+)")
# An update writes its deployment as `latest`, an import as `Latest`.
_DEPLOYMENT: Final = "{version, deployment: (.checkpoint | .latest // .Latest)}"
_ENDED: Final = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of a file backend; None for every other backend."""
    scheme, separator, rest = _address(environment).partition("://")
    path = Path(rest.partition("?")[0]).expanduser()  # a relative one is the engine's, run in ROOT
    return ROOT / path / ".pulumi" if separator and scheme == "file" else None


def _address(environment: Mapping[str, str]) -> str:
    """The backend's URL; "" where it is the one of `pulumi login`."""
    return {**os.environ, **environment}.get("PULUMI_BACKEND_URL", "")


@dataclass(frozen=True)
class Holder:
    """The process that holds a stack's lock."""

    user: str
    host: str
    pid: int
    since: str

    @property
    def alive(self) -> bool | None:
        """Whether it runs; None on another machine, where that cannot be seen.

        A killed process keeps its name and number until its parent asks for its end, which the
        first process of a container may do late or never.
        """
        if self.host != socket.gethostname():
            return None
        try:
            process = psutil.Process(self.pid)
            return "pulumi" in process.name() and process.status() not in _ENDED
        except psutil.Error:
            return False

    def __str__(self) -> str:
        """For a sentence."""
        return f"process {self.pid} of {self.user} on {self.host}, since {self.since[:19]}"


def holder_in(text: str) -> Holder | None:
    """The holder that the engine's refusal names."""
    match = _HOLDER.search(text)
    return Holder(match[1], match[2], int(match[3]), match[4]) if match else None


def holder(stack: str, environment: Mapping[str, str]) -> Holder | None:
    """The holder of a stack's lock; None without a lock, and on another backend."""
    base = folder(environment)
    locks = sorted((base / "locks").glob(f"*/{PROJECT}/{stack}/*.json")) if base else []
    for file in locks:
        try:
            lock = json.loads(file.read_text())
            return Holder(lock["username"], lock["hostname"], lock["pid"], lock["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def cut_attributes(stack: str, environment: Mapping[str, str]) -> list[Path]:
    """The empty ones of the small files `….attrs` that the backend keeps beside a stack's.

    It writes them in place: a kill leaves an empty one, and the CLI says EOF of a state that is
    whole. It does without one that is not there. Those beside other stacks' states count as well:
    a team stack reads its platform's.
    """
    base = folder(environment)
    if base is None:
        return []
    of_stack = [f"{kind}/{PROJECT}/{stack}" for kind in ("locks/*", "history", "backups")]
    beside = (base.glob(f"{place}/*.attrs") for place in (f"stacks/{PROJECT}", *of_stack))
    return [attributes for attributes in chain(*beside) if attributes.stat().st_size == 0]


def put_back(stack: str, environment: Mapping[str, str]) -> str:
    """The command that puts the newest readable copy of a stack's state back.

    The engine keeps the version before the last write beside the state (`.bak`), one per update in
    the history, and backups.
    """
    into = f"pulumi stack import --stack {stack}"
    base = folder(environment)
    if base is None:
        return f"pulumi stack export --stack {stack} --version <number> | {into}"
    copies = [
        *base.glob(f"history/{PROJECT}/{stack}/*.checkpoint.json"),
        *base.glob(f"backups/{PROJECT}/{stack}/*.json"),
    ]
    copies.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    copies[:0] = (base / "stacks" / PROJECT).glob(f"{stack}.json.bak")
    for copy in copies:
        if _readable(copy):
            return f"jq '{_DEPLOYMENT}' {shlex.quote(str(copy))} | {into}"
    return f"{into} --file <backup>, of your own: no copy beside it can be read"


def _readable(file: Path) -> bool:
    try:
        checkpoint = json.loads(file.read_text())["checkpoint"]
        return isinstance(checkpoint.get("latest") or checkpoint.get("Latest"), dict)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
