"""Asking a sandbox, as its tests do."""

from pathlib import Path

import psutil

from bench.shell import kubectl, run, until
from sandbox.control_plane.processes import MARK, Processes
from sandbox.lifecycle import Sandbox

__all__ = ["kubectl", "marked", "pids", "run", "until"]


def pids(sandbox: Sandbox) -> dict[str, int]:
    processes = Processes(sandbox.directory)
    found = {name: processes.running(name) for name in processes.names()}
    return {name: process.pid for name, process in found.items() if process is not None}


def marked(directory: Path) -> list[int]:
    """Living processes that belong to the sandbox, by their own environment."""
    found = []
    for pid in psutil.pids():
        try:
            if psutil.Process(pid).environ().get(MARK) == str(directory):
                found.append(pid)
        except (psutil.Error, OSError):
            continue
    return found
