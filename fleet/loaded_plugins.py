"""The policy pack, the queue provider and the probes, loaded before the engine asks for them.

Each is started when it is needed, and waited for: half a second until Python has loaded it. Here
they load beside the command's own imports, and what is started is a fork (provider/forks.py).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import psutil

from fleet.stack_file import ROOT
from provider.launch import LOADED

MODULES: Final = (
    "policies.pack",
    "provider.queue_plugin",
    "components.probes.kai",
    "components.probes.pods",
    "components.probes.shards",
    "components.probes.vcluster",
)
_END_SECONDS: Final = 5.0


def load() -> None:
    """Begin with it. Whatever goes wrong with that, the launchers do without it."""
    if LOADED in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="kai-fleet-"))
    socket = folder / "plugins"
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "provider.forks", "--with-stdin", str(socket), *MODULES],
        cwd=ROOT,
        stdin=subprocess.PIPE,  # it ends with this process, however that ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the engine, which ends its plugins in order
    )
    os.environ[LOADED] = str(socket)

    def end() -> None:
        with contextlib.suppress(psutil.Error):
            if not psutil.Process(process.pid).children():
                process.kill()  # it may be loading still, for nobody
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=_END_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
