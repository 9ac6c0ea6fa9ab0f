"""A run that the engine would never end: a resource that is deleted before it is replaced stays.

With --continue-on-error the engine (v3.274) answers the program for each step that fails, but for a
deletion (`DeleteStep.Fail`): the program waits for the resource that was to follow.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery import resume

_QUIET_SECONDS: Final = 10.0  # without a step; the program needs less between two of them
_LOOK_SECONDS: Final = 0.5


@contextmanager
def ended(report: Report, signals: resume.Signals) -> Iterator[None]:
    """End a run in order once it is stuck and every other step is done: the state is saved."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            quiet = time.monotonic() - report.last > _QUIET_SECONDS
            if report.stuck and quiet and not report.in_flight:
                signals.end_engine()
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
