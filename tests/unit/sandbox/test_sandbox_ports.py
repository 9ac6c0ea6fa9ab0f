"""The ports of a sandbox: no two sandboxes take the same ones."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import lifecycle
from sandbox.control_plane.ports import Ports, choose
from sandbox.directory import State, write_state

# Each looks at the same window first, and takes a moment until it listens there.
STARTS = """
import random, socket, sys, time
from pathlib import Path
from sandbox import lifecycle
random.randrange = lambda _: 0
with lifecycle._window(Path(sys.argv[1]), print) as window:
    time.sleep(1.5)
    server = socket.create_server(("127.0.0.1", window.etcd))
print(window.base, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAI_FLEET_CACHE", str(tmp_path / "cache"))


def test_two_that_start_at_once_have_ports_of_their_own(tmp_path: Path) -> None:
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", STARTS, str(tmp_path / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    try:
        reported = []
        for process in starting:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            reported.append(next((line for line in lines if line.strip().isdigit()), "it failed"))
    finally:
        for process in starting:
            process.communicate()
    assert "it failed" not in reported
    assert len(set(reported)) == 2


def remembered(where: Path) -> tuple[Ports, socket.socket]:
    """A sandbox that was killed, and what listens on a port of its since."""
    before = choose()
    where.mkdir()
    write_state(where, State(before.base))
    return before, socket.create_server(("127.0.0.1", before.etcd))


def test_one_without_data_gives_way_to_what_took_its_ports(tmp_path: Path) -> None:
    before, other = remembered(tmp_path / "killed")
    with other, lifecycle._window(tmp_path / "killed", print) as window:
        assert window != before


def test_one_with_data_keeps_its_ports_which_the_data_name(tmp_path: Path) -> None:
    before, other = remembered(tmp_path / "killed")
    (tmp_path / "killed" / "etcd").mkdir()
    with other, lifecycle._window(tmp_path / "killed", print) as window:
        assert window == before
