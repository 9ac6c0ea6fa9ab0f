"""The program's side of a comparison: `fleet` on a stack file of the benchmark's own.

How long a command takes, and how much memory it and what it starts hold at most. Both are never
taken of one run that is held against a script: to look at the memory of 20 plugins takes the
kernel a fifth of a core, which the script would not pay.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from bench.stacks import text
from kai_fleet_cli.stack_file.reading import ROOT, path_of
from sandbox.lifecycle import Sandbox

STACK: Final = "bench"
QUEUES: Final = ROOT / f"queues.{STACK}.yaml"
LARGEST: Final = 100_000  # bytes: Pulumi hands a stack file on as one variable of 128 KiB at most
_EVERY = 0.5  # seconds between two looks at the memory: the kernel adds up pages for each
MIB = 1024 * 1024


class CommandFailed(Exception):  # noqa: N818 - a figure that cannot be had
    """A command of a benchmark ended with an error; the text is the end of what it said."""


@dataclass(frozen=True)
class Ran:
    """Seconds from start to end; and, where it was looked at, the most memory in MiB that all its
    processes had at once, else 0.

    A page that several of them share, such as the code of one plugin for each vCluster, counts once
    (Linux' proportional set size).
    """

    seconds: float
    mib: float
    printed: str


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    fine: Sequence[int] = (0,),
    memory: bool = False,
) -> Ran:
    """Run a command to its end, and look at its `memory`.

    Raises CommandFailed for an exit code that is not `fine`.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    most = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, most), daemon=True)
    if memory:
        watcher.start()
    printed, _ = process.communicate()
    seconds = time.monotonic() - begun
    if memory:
        watcher.join()
    if process.returncode not in fine:
        raise CommandFailed(
            f"{' '.join(command)} ended with {process.returncode}: {printed[-800:]}"
        )
    return Ran(seconds, most[0], printed)


def _watch(process: subprocess.Popen[str], most: list[float]) -> None:
    while process.poll() is None:
        total = 0.0
        try:
            root = psutil.Process(process.pid)
            for part in (root, *root.children(recursive=True)):
                try:
                    total += _own(part) / MIB
                except psutil.Error:
                    continue
        except psutil.Error:
            return
        most[0] = max(most[0], total)
        time.sleep(_EVERY)


def _own(part: psutil.Process) -> int:
    """A process's memory in bytes, its share of what it has together with others."""
    held = part.memory_full_info()
    return int(getattr(held, "pss", held.uss))


@dataclass
class Program:
    """Runs `fleet` as a person does, from the shell."""

    sandbox: Sandbox

    def write(self, config: Mapping[str, Any]) -> None:
        """Edit the stack file; a queue tree that is too large for Pulumi goes beside it."""
        written = text({"config": dict(config)})
        if len(written) > LARGEST:
            QUEUES.write_text(text(config["kai-fleet:queues"]))
            written = text({"config": {**config, "kai-fleet:queues": QUEUES.name}})
        path_of(STACK).write_text(written)

    def fleet(self, *arguments: str, memory: bool = False) -> Ran:
        """One command. Raises CommandFailed."""
        command = (sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", STACK)
        return self.hand(*command, memory=memory)

    def hand(self, *command: str, fine: tuple[int, ...] = (0,), memory: bool = False) -> Ran:
        """One command of the script's, in the same environment. Raises CommandFailed."""
        environment = {**os.environ, **self.sandbox.env()}
        return run(command, environment, ROOT, fine=fine, memory=memory)


@contextmanager
def on_the_sandbox(sandbox: Sandbox) -> Iterator[Program]:
    """The program on a stack that goes with the end, and its file with it."""
    program = Program(sandbox)
    try:
        yield program
    finally:
        if path_of(STACK).exists():
            program.fleet("destroy", "--yes")
            path_of(STACK).unlink()
            QUEUES.unlink(missing_ok=True)
