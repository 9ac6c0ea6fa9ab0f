"""Asking a sandbox, as its tests do."""

from pathlib import Path

import psutil

from bench.shell import kubectl, run, until
from sandbox.control_plane.etcd import Etcd, below
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import MARK, Processes
from sandbox.directory import read_state
from sandbox.lifecycle import Sandbox

__all__ = ["keys", "kubectl", "marked", "pids", "run", "until"]


def pids(sandbox: Sandbox) -> dict[str, int]:
    processes = Processes(sandbox.directory)
    found = {name: processes.running(name) for name in processes.names()}
    return {name: process.pid for name, process in found.items() if process is not None}


def keys(sandbox: Sandbox, prefix: str) -> int:
    """How many keys etcd has below a path."""
    state = read_state(sandbox.directory)
    assert state is not None
    asked = Etcd(sandbox.directory, Ports(state.base_port)).client()
    answer = asked.send("POST", "/v3/kv/range", below(prefix) | {"count_only": True})
    return int(answer.get("count", 0))


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
