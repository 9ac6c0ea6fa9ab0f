"""The program's side of a comparison: `fleet` on a stack file of the benchmark's own.

How long a command takes, and how much memory it and what it starts hold at most.
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
    """Seconds from start to end, and the most memory in MiB that all its processes had at once.

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
    stdin: str = "",
    fine: Sequence[int] = (0,),
) -> Ran:
    """Run a command to its end. Raises CommandFailed for an exit code that is not `fine`."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    most = [0.0]
    watcher = threading.Thread(target=_watch, args=(process, most), daemon=True)
    watcher.start()
    printed, _ = process.communicate(stdin)
    seconds = time.monotonic() - begun
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

    def fleet(self, *arguments: str, fine: tuple[int, ...] = (0,)) -> Ran:
        """One command. Raises CommandFailed."""
        command = (sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", STACK)
        return self.hand(*command, fine=fine)

    def hand(self, *command: str, stdin: str = "", fine: tuple[int, ...] = (0,)) -> Ran:
        """One command of the script's, in the same environment. Raises CommandFailed."""
        return run(command, {**os.environ, **self.sandbox.env()}, ROOT, stdin, fine)


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
