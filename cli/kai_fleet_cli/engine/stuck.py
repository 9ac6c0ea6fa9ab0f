"""End a run for which the engine would wait for ever.

With --continue-on-error the engine (v3.274) tells the program of each step that failed, except a
deletion (`DeleteStep.Fail`). If a resource cannot be deleted before its replacement, the program
waits for the replacement, and the engine for the program.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery import resume

_QUIET_SECONDS = 10.0  # without an event; a program that runs takes less between two steps
_LOOK_SECONDS = 0.5


@contextmanager
def run_ended(report: Report, signals: resume.Signals) -> Iterator[None]:
    """End the run that `report` records if a resource is stuck, every other step has ended, and no
    event came for ten seconds.

    The engine gets SIGINT, so that it saves its state, and its run fails. A thread watches for
    that until the block ends.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            is_quiet = time.monotonic() - report.last_event > _QUIET_SECONDS
            if report.stuck and is_quiet and not report.in_flight:
                signals.end_engine()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
