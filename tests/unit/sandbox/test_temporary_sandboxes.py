"""Sandboxes of a test run that was killed are ended by the next one."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sandbox.control_plane.processes import Processes, ServerProcess
from sandbox.directory import State, write_state
from tests.temporary import temporary

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.temporary import temporary
with temporary(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAI_FLEET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "temporary-sandboxes"


def started(where: Path) -> psutil.Process:
    """A sandbox with one process."""
    where.mkdir()
    write_state(where, State(20_000))
    processes = Processes(where)
    processes.ensure(ServerProcess("etcd", ("sleep", "600"), where / "logs" / "etcd.log"))
    running = processes.running("etcd")
    assert running is not None
    return running


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_one_ends_with_its_owner(tmp_path: Path, cache: Path) -> None:
    with temporary(tmp_path / "one"):
        process = started(tmp_path / "one")
    assert ended(process)
    assert not (tmp_path / "one").exists()
    assert list(cache.iterdir()) == []


def test_what_a_killed_run_left_is_ended_by_the_next(tmp_path: Path, cache: Path) -> None:
    left = tmp_path / "left"
    done = subprocess.run([sys.executable, "-c", KILLED, str(left)], check=False)
    assert done.returncode == -9
    process = started(left)
    with temporary(tmp_path / "next"):
        assert ended(process)
        assert not left.exists()
    assert list(cache.iterdir()) == []


def test_one_whose_owner_lives_is_left_alone(tmp_path: Path, cache: Path) -> None:
    with temporary(tmp_path / "one"):
        process = started(tmp_path / "one")
        with temporary(tmp_path / "two"):
            assert not ended(process)
        assert json.loads(next(cache.iterdir()).read_text())["directory"] == str(tmp_path / "one")
