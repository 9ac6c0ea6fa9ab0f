"""`fleet up` and `fleet destroy` that a signal ends: the engine stops first."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from kai_fleet.settings.files.project import ROOT

pytestmark = pytest.mark.long

# A CLI that takes a moment to finish its step after Ctrl-C, and then says whether it could.
PULUMI = """\
#!{python}
import pathlib, signal, sys, time
def stop(*_):
    time.sleep(0.5)
    pathlib.Path("saved").write_text("the state")
    sys.exit(1)
signal.signal(signal.SIGINT, stop)
pathlib.Path("began").touch()
time.sleep(60)
"""
COMMAND = """\
import subprocess
from types import SimpleNamespace
from pulumi import automation
from pulumi.automation._cmd import CommandResult
from kai_fleet_cli import __main__ as cli
from kai_fleet_cli.commands import updates
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.environment import Environment
from kai_fleet_cli.recovery import reconcile

def engine(**_):
    ended = subprocess.run(["./pulumi"])
    result = CommandResult("", "error: update canceled", ended.returncode)
    raise automation.errors.CommandError(result)

workspace = SimpleNamespace(work_dir=".", env_vars={})
lab = SimpleNamespace(name="lab", workspace=workspace, up=engine, destroy=engine)
lab.export_stack = lambda: SimpleNamespace(deployment={})
runs.stack = lambda *_: lab
reconcile.before = lambda *_, **__: None
updates.for_stack = lambda *_, **__: Environment()
cli.main()
"""


@pytest.mark.parametrize("command", ["up", "destroy"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_the_engine_finishes_its_step_and_the_way_on_is_named(tmp_path, command, number, code):
    pulumi = tmp_path / "pulumi"
    pulumi.write_text(PULUMI.format(python=sys.executable))
    pulumi.chmod(0o755)
    flags = ["--yes"] if command == "destroy" else []
    ran = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(COMMAND), command, "--stack", "lab", *flags],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as at a terminal of its own: the signal reaches the command alone
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 30
    while not (tmp_path / "began").exists() and time.monotonic() < until:
        time.sleep(0.05)
    ran.send_signal(number)
    _, said = ran.communicate(timeout=30)
    assert (tmp_path / "saved").read_text() == "the state"
    assert ran.returncode == code
    again = " ".join(["--refresh", *flags, "--stack lab"])  # without a terminal it wants --yes
    assert f".venv/bin/fleet {command} {again}" in said
    assert "Traceback" not in said
    assert "failed" not in said
