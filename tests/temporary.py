"""End sandboxes with the process that started them: those of tests and of the benchmark.

One that was killed cannot end its own; the next one does it.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from sandbox import directory
from sandbox.control_plane.processes import Processes, living
from sandbox.tools.toolbox import cache_root


@contextmanager
def temporary(where: Path) -> Iterator[None]:
    """Whatever sandbox is started in that directory is gone afterwards, whatever happens."""
    records = cache_root() / "temporary-sandboxes"
    records.mkdir(parents=True, exist_ok=True)
    for record in records.glob("*.json"):
        _end_if_left(record)
    owner = psutil.Process()
    about = {"pid": owner.pid, "started": owner.create_time(), "directory": str(where)}
    record = records / f"{os.getpid()}-{where.parent.name}-{where.name}.json"
    record.write_text(json.dumps(about))
    try:
        yield
    finally:
        _end(where)
        record.unlink(missing_ok=True)


def _end_if_left(record: Path) -> None:
    try:
        about = json.loads(record.read_text())
    except (OSError, ValueError):
        return  # being written, or another's to judge
    if living(about) is None:
        _end(Path(about["directory"]))
        record.unlink(missing_ok=True)


def _end(where: Path) -> None:
    if directory.read_state(where) is not None:
        Processes(where).stop_everything()
        shutil.rmtree(where, ignore_errors=True)
