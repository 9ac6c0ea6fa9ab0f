"""`kubectl fleet … --watch` on a terminal and in a pipe, as a person and a program use it."""

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

from tests.unit.kubectl.team_cluster import PATHS, PODS

pytestmark = pytest.mark.long
AT_ONCE = ("--watch", "--every", "0.5")


def started(team, *words, **streams):
    """A process of the plugin that hears Ctrl-C."""
    kept = {key: text for key, text in os.environ.items() if key not in ("LINES", "NO_COLOR")}
    return subprocess.Popen(
        [sys.executable, "-m", "kubectl_fleet", *words],
        env=kept | {"KUBECONFIG": team.file, "PYTHONIOENCODING": "utf-8", "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **streams,
    )


class Terminal:
    """A command on a terminal of 80 columns and 30 lines."""

    def __init__(self, team, *words):
        self.screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self.running = started(team, *words, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.printed = b""

    def wait_for(self, text, seconds=30.0):
        """Until the terminal shows it; what came before is forgotten."""
        ends = time.monotonic() + seconds
        while text.encode() not in plain(self.printed):
            assert time.monotonic() < ends, plain(self.printed).decode()[-2000:]
            self.printed += os.read(self.screen, 4096)
        seen, self.printed = self.printed, b""
        return seen

    def end(self):
        """Ctrl-C, then the exit code."""
        self.running.send_signal(signal.SIGINT)
        code = self.running.wait(30)
        os.close(self.screen)
        return code


def plain(printed):
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", printed)


def test_on_a_terminal_the_numbers_change_in_place(team):
    terminal = Terminal(team, "queues", *AT_ONCE)
    seen = terminal.wait_for("1.02 borrowed")
    assert b"\x1b[32m" in seen, "colours on a terminal"
    team.has("pods", PODS[:2])
    seen = terminal.wait_for("0.5 borrowed")
    assert b"\x1b[1A" in seen, "the lines of before are written over"
    assert terminal.end() == 0


def test_a_cluster_that_stops_answering_is_said_and_waited_for(team):
    terminal = Terminal(team, "pending", *AT_ONCE)
    terminal.wait_for("nine")
    team.refuses("pods", status=500)
    terminal.wait_for("what stands above is from before")
    team.has("pods", PODS[:2])
    terminal.wait_for("no pod waits")
    assert terminal.end() == 0


def piped(team, *words):
    return started(team, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_first_reading_that_fails_ends_it(team):
    team.refuses("pods", status=401)
    running = piped(team, "pods", "--watch")
    assert running.wait(30) == 1
    assert "does not accept the credentials" in running.stderr.read()


def test_for_machines_each_change_is_one_line(team):
    running = piped(team, "queues", *AT_ONCE, "--json")
    first = json.loads(running.stdout.readline())
    asked = len(team.handler.asked)
    while len(team.handler.asked) < asked + 3 * len(PATHS):
        time.sleep(0.05)  # readings that find nothing new print nothing
    team.has("pods", PODS[:2])
    second = json.loads(running.stdout.readline())
    assert [found["queues"][2]["gpu"]["inUse"] for found in (first, second)] == [5.02, 4.5]
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 0


def test_in_a_pipe_there_are_no_colours_and_only_changes(team):
    running = piped(team, "queues", *AT_ONCE)
    while "1 waits" not in (line := running.stdout.readline()):
        assert "\x1b" not in line
    team.has("pods", PODS[:2])
    while "0.5 borrowed" not in (line := running.stdout.readline()):
        assert line
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 0
    assert "5.02" not in running.stdout.read()
