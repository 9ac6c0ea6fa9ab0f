"""`fleet my … --watch` on a terminal and in a pipe, as a person and a program use it."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from kai_fleet_cli.stack_file.reading import ROOT
from kubectl_fleet.my.view import KINDS, WHY
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.test_my import PODS, SAMPLES

pytestmark = pytest.mark.long

ALL = {kind: path.format("") for kind, path in {**KINDS, **WHY}.items()}
PODS_AT = ALL["pods"]


@pytest.fixture
def server(tmp_path):
    with serving() as (handler, url):
        for kind, path in ALL.items():
            handler.answers[path] = (200, {"items": SAMPLES[kind]})
        file = tmp_path / "team.kubeconfig"
        file.write_text(kubeconfig(url))
        handler.file = str(file)
        yield handler


class Terminal:
    """A command on a terminal of 80 columns and 30 lines."""

    def __init__(self, server, *words):
        self.screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        unset = ("COLUMNS", "LINES", "NO_COLOR")
        kept = {key: value for key, value in os.environ.items() if key not in unset}
        self.running = subprocess.Popen(
            [sys.executable, "-m", "kai_fleet_cli", "my", *words],
            cwd=ROOT,
            env=kept | {"KUBECONFIG": server.file, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=as_a_shell_does,
        )
        os.close(theirs)
        self.printed = b""

    def wait_for(self, text, seconds=30.0):
        """Until the terminal shows it; what came before is forgotten."""
        ends = time.monotonic() + seconds
        while text.encode() not in plain(self.printed):
            assert time.monotonic() < ends, plain(self.printed).decode()[-2000:]
            try:
                self.printed += os.read(self.screen, 4096)
            except OSError:  # the terminal of a process that ended
                raise AssertionError(plain(self.printed).decode()) from None
        seen, self.printed = self.printed, b""
        return seen

    def end(self):
        """Ctrl-C, then the exit code."""
        os.write(self.screen, b"\x03")
        code = self.running.wait(30)
        os.close(self.screen)
        return code


def as_a_shell_does():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def plain(printed):
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", printed)


def test_on_a_terminal_the_numbers_change_in_place(server):
    terminal = Terminal(server, "queues", "--watch", "--every", "0.5")
    seen = terminal.wait_for("1.02 borrowed")
    assert b"\x1b[32m" in seen, "colours on a terminal"
    server.answers[PODS_AT] = (200, {"items": PODS[:2]})
    seen = terminal.wait_for("0.5 borrowed")
    assert b"\x1b[1A" in seen, "the lines of before are written over"
    assert terminal.end() == 0


def test_a_cluster_that_stops_answering_is_said_and_waited_for(server):
    terminal = Terminal(server, "pending", "--watch", "--every", "0.5")
    terminal.wait_for("nine")
    server.answers[PODS_AT] = (500, {})
    terminal.wait_for("what stands above is from before")
    server.answers[PODS_AT] = (200, {"items": PODS[:2]})
    terminal.wait_for("no pod waits")
    assert terminal.end() == 0


def test_a_first_look_that_fails_ends_it(server):
    server.answers[PODS_AT] = (401, {})
    ran = piped(server, "pods", "--watch")
    assert ran.wait(30) == 1
    assert "does not accept the credentials" in ran.stderr.read()


def piped(server, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "kai_fleet_cli", "my", *words],
        cwd=ROOT,
        env=os.environ | {"KUBECONFIG": server.file, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_for_machines_each_change_is_one_line(server):
    ran = piped(server, "queues", "--watch", "--every", "0.5", "--json")
    first = json.loads(ran.stdout.readline())
    asked = len(server.asked)
    while len(server.asked) < asked + 3 * len(KINDS):
        time.sleep(0.05)  # looks that find nothing new print nothing
    server.answers[PODS_AT] = (200, {"items": PODS[:2]})
    second = json.loads(ran.stdout.readline())
    in_use = [
        next(one for one in found["queues"] if one["name"] == "train")["gpu"]["inUse"]
        for found in (first, second)
    ]
    assert in_use == [5.02, 4.5]
    ran.send_signal(signal.SIGINT)
    assert ran.wait(30) == 0


def test_in_a_pipe_there_are_no_colours_and_only_changes(server):
    ran = piped(server, "queues", "--watch", "--every", "0.5")
    while "pod nine never runs" not in (line := ran.stdout.readline()):
        assert "\x1b" not in line
    server.answers[PODS_AT] = (200, {"items": PODS[:2]})
    while "0.5 borrowed" not in (line := ran.stdout.readline()):
        assert line
    ran.send_signal(signal.SIGINT)
    assert ran.wait(30) == 0
    assert "5.02" not in ran.stdout.read()
