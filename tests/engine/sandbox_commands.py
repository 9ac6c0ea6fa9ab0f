"""Asking a sandbox, as its tests do."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from sandbox.lifecycle import Sandbox
from sandbox.processes import MARK, Processes


def run(sandbox: Sandbox, *command: str, stdin: str | None = None, **env: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **sandbox.env(), **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def kubectl(sandbox: Sandbox, *arguments: str, **kwargs: Any) -> Any:
    text = run(sandbox, "kubectl", *arguments, **kwargs)
    return json.loads(text) if arguments[-2:] == ("-o", "json") else text


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.3)
    return found


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
