"""An interrupted run: a signal ends the engine in order, and a `fleet` command goes on from there.

The command works in the state that it is printed in. A team that may go and that the stack file
does not have any more has to be named to `fleet up`; without a terminal `fleet destroy` wants
`--yes`.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

import psutil

from kai_fleet.settings.files.project import FLEET
from kai_fleet_cli.display import terminal

_WAIT_SECONDS: Final = 1.0


class Interrupted(SystemExit):
    """A signal ended the command, with the exit code that a shell expects for it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


@dataclass
class Signals:
    """The signal that came while the engine ran, 0 for none. `received`: the engine has it, too."""

    number: int = 0
    received: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise Interrupted if a signal came."""
        if self.number:
            raise Interrupted(self.number)

    def note(self, line: str) -> None:
        """Look in a line of the engine for its acknowledgement of a signal."""
        if " received; cancelling" in line:
            self.received.set()

    def begin_engine(self) -> None:
        """Begin with an engine that was not told to end, unless the command itself was."""
        if not self.number:
            self.received.clear()

    def end_engine(self) -> None:
        """Have the engine end its steps, unless it was told so already: at a second signal it drops
        its state.
        """
        if not self.received.is_set():
            for engine in _engines():
                engine.send_signal(signal.SIGINT)


@contextmanager
def graceful_shutdown() -> Iterator[Signals]:
    """Raise Interrupted for the two signals; while the engine runs, have it end its steps first.

    The engine saves its state and fails, and `check` says why. A terminal, and a CI runner that
    cancels a job, send the signal to the engine, too, which acknowledges it. It must get only one:
    at a second one it drops its state. So it gets ours only after a second without an answer.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # only the main thread may set handlers
        return

    def end(number: int, frame: FrameType | None) -> None:
        if signals.number:
            return
        signals.number = number
        if not _engines():
            signals.check()
        signals.received.wait(_WAIT_SECONDS)
        signals.end_engine()

    before = {n: signal.signal(n, end) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _engines() -> list[psutil.Process]:
    engines = []
    for child in psutil.Process().children():  # the sandbox's servers may be others
        with suppress(psutil.Error):
            engines += [child] if child.name() == "pulumi" else []
    return engines


def up(stack: str, removed: Sequence[str] = ()) -> str:
    """`fleet up --refresh` of a stack; `removed` are teams that may go."""
    return f"{FLEET} up --refresh --stack {stack}{naming(removed)}"


def naming(names: Sequence[str]) -> str:
    """The words that name what may be lost, with a space before each."""
    return f" --yes {' '.join(names)}" if names else ""


def destroy(stack: str) -> str:
    """`fleet destroy --refresh` of a stack."""
    yes = "" if terminal.asks() else " --yes"
    return f"{FLEET} destroy --refresh{yes} --stack {stack}"
