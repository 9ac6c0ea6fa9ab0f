"""`fleet up` and `fleet destroy` that a signal ends: the engine stops first."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
import time

import pytest

from kai_fleet_stack.project import ROOT

pytestmark = pytest.mark.long

# A CLI that takes a moment to finish its step after a signal, and drops its state on a second one.
# What it prints at the first is the engine's own (pkg/v3 v3.274, backend/cancellation_scope.go).
PULUMI = """\
#!{python}
import os, pathlib, signal, sys, time
def each(handler):
    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGTERM, handler)
def stop(number, _):
    each(lambda *_: os._exit(1))
    name = "SIGTERM" if number == signal.SIGTERM else "^C"
    print(name, "received; cancelling. If you would like to terminate immediately, …", flush=True)
    time.sleep(1.5)
    pathlib.Path("saved").write_text("the state")
    sys.exit(1)
each(stop)
pathlib.Path("began").touch()
time.sleep(60)
"""
COMMAND = """\
import subprocess, threading
from types import SimpleNamespace
from pulumi import automation
from pulumi.automation._cmd import CommandResult
from kai_fleet_cli import __main__ as cli
from kai_fleet_cli.commands import updates
from kai_fleet_cli.engine import workspace
from kai_fleet_cli.engine.environment import Environment
from kai_fleet_cli.recovery import state

def engine(on_output, **_):
    with subprocess.Popen(["./pulumi"], stdout=subprocess.PIPE, text=True) as ran:
        hear = threading.Thread(target=lambda: [on_output(line) for line in ran.stdout])
        hear.start()
        hear.join()
    result = CommandResult("", "error: update canceled", ran.returncode)
    raise automation.errors.CommandError(result)

work = SimpleNamespace(work_dir=".", env_vars={})
lab = SimpleNamespace(name="lab", workspace=work, up=engine, destroy=engine)
workspace.open_stack = lambda *_: lab
state.exported = lambda *_: state.State()
updates.for_stack = lambda *_, **__: Environment()
cli.main()
"""


def _begun(folder, *arguments, prepare=lambda: None):
    """A command whose engine is at its step."""
    pulumi = folder / "pulumi"
    pulumi.write_text(PULUMI.format(python=sys.executable))
    pulumi.chmod(0o755)
    (folder / "Pulumi.lab.yaml").write_text("config:\n  kai-fleet:teams: {}\n")

    def begin():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        prepare()

    ran = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(COMMAND), *arguments, "--stack", "lab"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a signal reaches the command alone, unless a terminal sends it
        preexec_fn=begin,
    )
    until = time.monotonic() + 60
    while not (folder / "began").exists():
        assert ran.poll() is None and time.monotonic() < until, "the engine never began"
        time.sleep(0.05)
    return ran


@pytest.mark.parametrize("command", ["up", "destroy"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_the_engine_finishes_its_step_and_the_way_on_is_named(tmp_path, command, number, code):
    flags = ["--yes"] if command == "destroy" else []
    ran = _begun(tmp_path, command, *flags)
    ran.send_signal(number)
    _, reported = ran.communicate(timeout=60)
    assert (tmp_path / "saved").read_text() == "the state"
    assert ran.returncode == code
    again = " ".join(["--refresh", *flags, "--stack lab"])  # without a terminal it wants --yes
    assert f".venv/bin/fleet {command} {again}" in reported
    assert "Traceback" not in reported
    assert "failed" not in reported


def test_one_ctrl_c_is_one_for_the_engine_where_stdin_is_no_terminal(tmp_path):
    """`cat teams | while read team; do fleet team switch …`: the terminal tells both of them."""
    screen, theirs = pty.openpty()
    ran = _begun(tmp_path, "up", prepare=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
    os.write(screen, b"\x03")
    ran.communicate(timeout=60)
    assert (tmp_path / "saved").read_text() == "the state"
    assert ran.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_to_the_whole_group_is_one_for_the_engine(tmp_path, number):
    """A CI runner that cancels a job: there is no terminal, and all of its processes are told."""
    ran = _begun(tmp_path, "up")
    os.killpg(ran.pid, number)
    ran.communicate(timeout=60)
    assert (tmp_path / "saved").read_text() == "the state"
    assert ran.returncode == 128 + number
