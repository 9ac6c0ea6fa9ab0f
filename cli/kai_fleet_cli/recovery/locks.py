"""The lock that an update holds on its stack: who has it, and whether it still runs."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psutil

from kai_fleet_cli.recovery import file_backend

# The engine's words: "…: created by NAME@HOST (pid 12) at 2026-11-21T15:22:18Z".
_HOLDER: Final = re.compile(r"created by (\S+)@(\S+) \(pid (\d+)\) at (\S+)")
_ENDED: Final = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


@dataclass(frozen=True)
class Holder:
    """The process that took the lock."""

    user: str
    host: str
    pid: int
    since: str

    @property
    def alive(self) -> bool | None:
        """Whether it runs; None where that cannot be seen, on another machine.

        A killed one keeps its name and number until its parent asks for its end, which the first
        process of a container may do late or never.
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


def named_in(text: str) -> Holder | None:
    """The holder that the engine's refusal names."""
    found = _HOLDER.search(text)
    return Holder(found[1], found[2], int(found[3]), found[4]) if found else None


def holder(stack: str, environment: Mapping[str, str]) -> Holder | None:
    """The holder of a stack's lock on a file backend; None without one, and elsewhere."""
    for file in file_backend.locks(stack, environment):
        try:
            lock = json.loads(file.read_text())
            return Holder(lock["username"], lock["hostname"], lock["pid"], lock["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
