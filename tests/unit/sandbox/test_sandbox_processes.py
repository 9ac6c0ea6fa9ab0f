"""The sandbox's processes, with `sleep` in the role of its parts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sandbox import lifecycle
from sandbox.control_plane.processes import Processes, ServerProcess
from sandbox.directory import SandboxError


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    created = Processes(tmp_path)
    yield created
    created.stop_everything()


def part(directory: Path, *command: str, name: str = "sleeper") -> ServerProcess:
    return ServerProcess(name, command or ("sleep", "600"), directory / "logs" / f"{name}.log")


def test_a_part_is_started_once(processes: Processes, tmp_path: Path) -> None:
    assert processes.ensure(part(tmp_path))
    first = processes.running("sleeper")
    assert first is not None
    # Another process of the user asks: it finds the same one.
    assert not Processes(tmp_path).ensure(part(tmp_path))
    assert processes.running("sleeper") == first


def test_a_killed_part_counts_as_dead_at_once(processes: Processes, tmp_path: Path) -> None:
    processes.ensure(part(tmp_path))
    first = processes.running("sleeper")
    assert first is not None
    first.kill()
    while first.status() != psutil.STATUS_ZOMBIE:  # a child of ours stays one until somebody looks
        time.sleep(0.01)
    assert processes.running("sleeper") is None
    assert processes.ensure(part(tmp_path))


def test_a_recycled_pid_is_left_alone(processes: Processes, tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        (tmp_path / "pids").mkdir()
        record = {"pid": stranger.pid, "started": 1.0, "digest": "", "log": ""}
        (tmp_path / "pids" / "sleeper.json").write_text(json.dumps(record))
        assert processes.running("sleeper") is None
        processes.stop(["sleeper"])
        processes.stop_everything()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_another_sandbox_is_left_alone(processes: Processes, tmp_path: Path) -> None:
    other = Processes(tmp_path / "other")
    (tmp_path / "other").mkdir()
    other.ensure(part(tmp_path / "other"))
    processes.stop_everything()
    assert other.running("sleeper") is not None
    other.stop_everything()


def test_a_plugin_that_a_killed_engine_left_is_ended_and_no_shell_of_the_user(
    processes: Processes, tmp_path: Path
) -> None:
    home = {"PULUMI_HOME": str(tmp_path / "pulumi-home")}
    for program, variables, ends in (
        ("/x/bin/pulumi-resource-command", home, True),
        ("/x/bin/pulumi-resource-command", {"PULUMI_HOME": "/other"}, False),
        ("bash", home, False),
    ):
        command = [program, "600"]
        left = subprocess.Popen(command, executable="sleep", env={**os.environ, **variables})
        try:
            processes.stop_everything()
            assert left.wait(10) == -signal.SIGKILL if ends else left.poll() is None
        finally:
            left.kill()
            left.wait()


def test_one_that_ignores_signals_is_ended(processes: Processes, tmp_path: Path) -> None:
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on'); time.sleep(600)"
    stubborn = part(tmp_path, sys.executable, "-u", "-c", script)
    processes.ensure(stubborn)
    processes.wait_for(stubborn, lambda: "on" in stubborn.log.read_text(), print, seconds=20)
    running = processes.running("sleeper")
    assert running is not None
    processes.stop(["sleeper"])
    assert not running.is_running() or running.status() == psutil.STATUS_ZOMBIE


def test_a_part_that_stops_while_starting_says_why(processes: Processes, tmp_path: Path) -> None:
    failing = part(tmp_path, "sh", "-c", "echo no such flag: --nonsense >&2; exit 2")
    processes.ensure(failing)
    with pytest.raises(SandboxError, match=r"sleeper stopped while starting.*--nonsense") as caught:
        processes.wait_for(failing, lambda: False, print)
    assert str(failing.log) in str(caught.value)


def test_a_part_that_panics_once_is_started_again(processes: Processes, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    panics = part(tmp_path, "sh", "-c", f"test -e {begun} && exec sleep 600; touch {begun}; exit 2")
    processes.ensure(panics)
    psutil.wait_procs([each for each in [processes.running(panics.name)] if each], timeout=10)
    assert lifecycle._bring_up(processes, panics, lambda: processes.runs(panics), print)
    assert processes.running(panics.name)


def test_a_port_that_another_program_has_is_named(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.control_plane.processes._RELEASE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        listens = other.getsockname()
        with pytest.raises(SandboxError, match=f"sleeper cannot start.*:{listens[1]}"):
            processes.ensure(replace(part(tmp_path), listens=listens))
    assert processes.ensure(replace(part(tmp_path), listens=listens))
