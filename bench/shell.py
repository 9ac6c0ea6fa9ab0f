"""Asking a sandbox with the tools that a person would use."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

from sandbox.lifecycle import Sandbox


def run(sandbox: Sandbox, *command: str, stdin: str | None = None, **env: str) -> str:
    """Run a command; what it prints. AssertionError with its last words where it fails."""
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
    """Run kubectl; parsed where `-o json` ends the arguments."""
    text = run(sandbox, "kubectl", *arguments, **kwargs)
    return json.loads(text) if arguments[-2:] == ("-o", "json") else text


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Ask until the answer is true; AssertionError after that time."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.3)
    return found
