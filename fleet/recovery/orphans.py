"""What a killed engine left running: its providers end what they had begun, then they go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

_PATIENCE_SECONDS: Final = 60.0
# Parts of command lines: these change a cluster, the others only listen.
_WORKERS: Final = (
    "pulumi-resource-",
    "sandbox.providers.",
    "components.probes.",
)
_HELM_CONFIG: Final = "kai-fleet-"  # how the file is called that the stand-in writes for helm
# Forks of a loaded process end with the launcher that asked for them, which is looked at itself;
# and the process that loads them belongs to a command, perhaps to this one.
_LOADED: Final = "provider.forks"
_LISTENERS: Final = ("pulumi.policy", "pulumi-analyzer-")


def wait(directory: str, say: Callable[[str], None]) -> None:
    """Return when nothing of a killed engine works on this project any more.

    Otherwise a release could be cleared away while a leftover still installs it. What is not
    done after a minute is ended: nobody will read its answer.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    told = False
    while left := _orphans(Path(directory).resolve()):
        busy = [process for process, works in left if works]
        if not busy or time.monotonic() > until:
            _end([process for process, _ in left])
            return
        if not told:
            told = True
            pids = ", ".join(str(process.pid) for process in busy)
            say(f"waiting for what a killed engine's providers still do (processes {pids})")
        time.sleep(0.3)


def _orphans(directory: Path) -> list[tuple[psutil.Process, bool]]:
    """Plugins and their programs that work in this project without an engine above them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            line = process.cmdline()
            works = _changes_a_cluster(line)
            if _LOADED in line:
                continue
            if not works and not any(mark in word for word in line for mark in _LISTENERS):
                continue
            here = Path(process.cwd()).is_relative_to(directory)
            if here and not any(above.name() == "pulumi" for above in process.parents()):
                found.append((process, works))
    return found


def _changes_a_cluster(line: list[str]) -> bool:
    if any(mark in argument for argument in line for mark in _WORKERS):
        return True
    given = line[line.index("--kubeconfig") + 1 :] if "--kubeconfig" in line else []
    return bool(given) and Path(given[0]).name.startswith(_HELM_CONFIG)


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
