"""`fleet team …` at a terminal, as a person types: questions, answers, Ctrl-C."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios

from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.team_project import LAB


def _as_a_shell_does():
    """The terminal is the command's, and so are its signals: who started the tests may ignore them,
    as a shell does for what runs behind it.
    """
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Typed:
    """A command on a terminal of its own, in a folder with the code and one stack file."""

    def __init__(self, folder, *arguments):
        for entry in ROOT.iterdir():
            if entry.name in (
                "components",
                "cli",
                "policies",
                "sandbox",
                "Pulumi.yaml",
                "__main__.py",
            ):
                (folder / entry.name).symlink_to(entry)
        (folder / "Pulumi.lab.yaml").write_text(LAB)
        self.folder, self.printed = folder, b""
        self.screen, theirs = pty.openpty()
        self.running = subprocess.Popen(
            [sys.executable, "-m", "kai_fleet_cli", "team", *arguments, "--stack", "lab"],
            cwd=folder,
            env=os.environ | {"KUBECONFIG": "/dev/null", "COLUMNS": "120"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_as_a_shell_does,
        )
        os.close(theirs)

    def answer(self, question, text):
        """Wait for a question, then type."""
        while question.encode() not in self.printed:
            self.printed += os.read(self.screen, 4096)
        self.printed = self.printed.partition(question.encode())[2]
        os.write(self.screen, text.encode())

    def interrupt(self, question):
        """Wait for a question, then type Ctrl-C until the command has ended, as a person does.

        One that comes as Python just begins to wait for a line is seen after the next key.
        """
        self.answer(question, "\x03")
        while self.running.poll() is None:
            try:
                self.running.wait(3)
            except subprocess.TimeoutExpired:
                os.write(self.screen, b"\x03")

    def end(self):
        """The exit code, once everything is printed."""
        try:
            while more := os.read(self.screen, 4096):
                self.printed += more
        except OSError:
            pass  # the terminal of a process that ended
        os.close(self.screen)
        code = self.running.wait(30)
        assert b"Traceback" not in self.printed
        return code

    def text(self):
        return (self.folder / "Pulumi.lab.yaml").read_text()


def test_ctrl_c_at_the_question_leaves_the_file_alone(tmp_path):
    command = Typed(tmp_path, "switch", "ml", "v0.16.8")
    command.interrupt("Run the update now?")
    assert command.end() == 130
    assert command.text() == LAB


def test_no_to_the_update_keeps_what_was_edited(tmp_path):
    command = Typed(tmp_path, "switch", "ml", "v0.16.8")
    command.answer("Run the update now?", "n\n")
    assert command.end() == 0
    assert command.text() == LAB.replace("v0.14.7", "v0.16.8")


def test_a_removal_wants_the_name(tmp_path):
    command = Typed(tmp_path, "remove", "dev")
    command.answer("Type dev to remove it", "ml\n")
    assert command.end() == 1
    assert b"nothing is changed" in command.printed
    assert command.text() == LAB
