"""The policy pack and the product's own provider, loaded before the engine asks for them.

The engine starts each when it needs it, and waits half a second for Python to load. Here they
load beside the command's own imports; the engine then gets forks of them (provider/forks.py).
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from fleet.stack_file import ROOT

VARIABLE: Final = "KAI_FLEET_LOADED"  # the socket at which their launchers ask
MODULES: Final = ("policies.pack", "provider.queue_plugin")


def load() -> None:
    """Begin with it. Whatever goes wrong with that, the launchers do without it."""
    if VARIABLE in os.environ:
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
    os.environ[VARIABLE] = str(socket)

    def end() -> None:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
