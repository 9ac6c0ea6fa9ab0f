"""Plugins that are forked from a loaded process: what the engine notices of that is nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from fleet import loaded_plugins
from fleet.recovery import orphans
from fleet.stack_file import ROOT
from provider import forks
from provider.launch import LOADED

LAUNCH = ROOT / "provider" / "launch.py"
PLUGIN = """\
import os, sys, time

def main():
    print(os.getcwd(), os.environ["GIVEN"], *sys.argv[1:])
    if "stay" in sys.argv:
        time.sleep(60)
    sys.exit(7)

if __name__ == "__main__":
    main()
"""

READINESS = """\
import os, pathlib

def prepare():
    (pathlib.Path({folder!r}) / f"ready-{{os.getpid()}}").touch()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugin_of_a_test.py").write_text(PLUGIN)
    return tmp_path


@pytest.fixture
def loaded(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-u", "-m", "provider.forks", "--with-stdin"]
    with subprocess.Popen(
        [*command, str(folder / "socket"), "plugin_of_a_test"],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
    ) as process:
        until((folder / "socket").exists)
        yield process
        process.kill()


def until(true, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def launched(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", str(LAUNCH)),
            *("DOOR", str(folder), "plugin_of_a_test", *arguments),
        ],
        env={
            "DOOR": str(folder / "socket"),
            "GIVEN": "to the launcher",
            "PATH": os.environ["PATH"],
        },
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_fork_is_the_plugin_that_the_launcher_would_have_been(folder, loaded):
    forked = launched(folder, "127.0.0.1:1", "--more")
    said = forked.communicate(timeout=10)[0]
    loaded.kill()
    loaded.wait()
    alone = launched(folder, "127.0.0.1:1", "--more")
    assert alone.communicate(timeout=10)[0] == said
    assert said == f"{folder} to the launcher 127.0.0.1:1 --more\n"
    assert forked.returncode == alone.returncode == 7


def test_where_the_loaded_process_cannot_load_the_launcher_is_the_plugin(folder):
    (folder / "broken.py").write_text("import time; time.sleep(1); raise ImportError('gone')")
    command = [sys.executable, "-u", "-m", "provider.forks", str(folder / "socket"), "broken"]
    path = f"{ROOT}{os.pathsep}{folder}"
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL
    ):
        until((folder / "socket").exists)
        said, _ = launched(folder, "127.0.0.1:1").communicate(timeout=20)
    assert said == f"{folder} to the launcher 127.0.0.1:1\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_launcher(folder, loaded, how):
    until(psutil.Process(loaded.pid).children)
    (plugin,) = psutil.Process(loaded.pid).children()  # it waits
    launcher = launched(folder, "stay")
    assert launcher.stdout is not None
    launcher.stdout.readline()
    launcher.send_signal(how)
    assert launcher.wait(5) == -how
    psutil.wait_procs([plugin], 5)
    assert not plugin.is_running()


@pytest.fixture
def spares(folder: Path) -> Iterator[psutil.Process]:
    """Three forks that wait, each of which left a file to say that it is ready."""
    (folder / "readiness.py").write_text(READINESS.format(folder=str(folder)))
    options = ["--spares=3", "--prepared-by=readiness", str(folder / "socket")]
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "provider.forks", *options, "plugin_of_a_test"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
    ) as process:
        until(lambda: len(ready(folder)) == 3)
        yield psutil.Process(process.pid)
        process.kill()


def ready(folder: Path) -> set[int]:
    return {int(path.name.removeprefix("ready-")) for path in folder.glob("ready-*")}


def test_who_waits_is_ready_and_whoever_went_is_replaced(folder, spares):
    first = ready(folder)
    assert {it.pid for it in spares.children()} == first
    psutil.Process(min(first)).kill()
    until(lambda: len(ready(folder)) == 4)
    launcher = launched(folder, "stay")
    launcher.stdout.readline()
    until(lambda: len(ready(folder)) == 5)
    plugin = {it.pid for it in spares.children()}
    assert len(plugin) == 4, "the plugin, and three who wait again"
    launcher.kill()
    launcher.wait(5)


def test_nobody_is_forked_beside_those_who_are_asked_for(folder, spares):
    first = ready(folder)
    begun = time.time()
    together = [launched(folder, "stay") for _ in range(2)]
    for launcher in together:
        launcher.stdout.readline()
    until(lambda: len(ready(folder)) == 5)
    new = [folder / f"ready-{pid}" for pid in ready(folder) - first]
    assert min(file.stat().st_mtime for file in new) > begun + forks.QUIET_SECONDS
    for launcher in together:
        launcher.kill()
        launcher.wait(5)


def test_more_launchers_than_wait_are_all_served(folder, spares):
    together = [launched(folder, str(number)) for number in range(8)]
    for number, launcher in enumerate(together):
        assert launcher.communicate(timeout=20)[0] == f"{folder} to the launcher {number}\n"
        assert launcher.returncode == 7


def test_who_waits_goes_when_the_loaded_process_is_killed(folder, spares):
    waiting = spares.children()
    spares.kill()
    _, left = psutil.wait_procs(waiting, 5)
    assert left == []


def test_the_loaded_process_ends_with_its_stdin_but_not_before_its_forks(folder, loaded):
    launcher = launched(folder, "stay")
    launcher.stdout.readline()
    loaded.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        loaded.wait(0.5)
    launcher.kill()
    assert loaded.wait(10) == 0


def test_what_is_loaded_for_a_command_is_no_leftover_of_a_killed_engine(tmp_path, monkeypatch):
    """A command waits a minute for those before it goes on, and would then end its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr(loaded_plugins.atexit, "register", ends.append)
    monkeypatch.delenv(LOADED, raising=False)
    loaded_plugins.load()
    try:
        assert orphans._orphans(ROOT) == []
    finally:
        os.environ.pop(LOADED)
        ends[0]()


def test_a_command_loads_its_plugins_once_and_takes_them_with_it(tmp_path):
    program = """\
import os, sys
from fleet import loaded_plugins
from fleet.recovery import orphans
loaded_plugins.load()
first = os.environ["KAI_FLEET_LOADED"]
loaded_plugins.load()
assert os.environ["KAI_FLEET_LOADED"] == first
print(first)
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as command:
        socket = Path(command.stdout.readline().strip())
        until(socket.exists, 30)
        (loaded,) = psutil.Process(command.pid).children()
        command.communicate("\n", timeout=10)
    assert not loaded.is_running()
    assert not list(tmp_path.iterdir())
    assert LOADED not in os.environ
