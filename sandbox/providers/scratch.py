"""Files of a plugin's process that others must not read; what a kill leaves, the next removes."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import psutil

_PREFIX: Final = "kai-fleet-plugin-"


@functools.cache
def _folder() -> Path:
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def private_file(text: str) -> Path:
    """A new file with that text, which only this user can read."""
    handle, name = tempfile.mkstemp(dir=_folder())
    with os.fdopen(handle, "w") as file:
        file.write(text)
    return Path(name)
