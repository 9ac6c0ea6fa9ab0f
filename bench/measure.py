"""How long a command takes, and how much memory it and what it starts hold at most."""

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

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
