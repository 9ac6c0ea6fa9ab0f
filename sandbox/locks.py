"""Files that one process at a time holds."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(file: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, which is made where it is not; `waits` is called where another holds it.

    Its removal by the holder, with its folder, ends the lock.
    """
    while True:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                waits()
                fcntl.flock(lock, fcntl.LOCK_EX)
            if file.exists() and file.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                yield
                return
