"""Interrupted runs: a signal ends the engine in order, and a `fleet` command goes on from there.

That command has to work in the state that the interruption leaves. `fleet up` has to name a team
that the stack file has no longer, and `fleet destroy` wants `--yes` without a terminal.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

import psutil

from kai_fleet.names import FLEET
from kai_fleet_cli.display import terminal

_WAIT_SECONDS = 1.0


class Interrupted(SystemExit):
    """A signal ended the command. The exit code is 128 and the signal's number, as in a shell."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


@dataclass
class Signals:
    """The SIGINT or SIGTERM that came to this process within `graceful_shutdown`.

    Attributes:
        number: The signal; 0 for none. Later signals do not change it.
        received: Set once the engine says that it has a signal, too, whoever sent that.
    """

    number: int = 0
    received: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise Interrupted if a signal came."""
        if self.number:
            raise Interrupted(self.number)

    def note(self, line: str) -> None:
        """Set `received` if a line of the engine acknowledges a signal."""
        if " received; cancelling" in line:
            self.received.set()

    def begin_engine(self) -> None:
        """Clear `received` before an engine starts, unless a signal to the command came."""
        if not self.number:
            self.received.clear()

    def end_engine(self) -> None:
        """Send each engine SIGINT, unless `received` is set: at a second signal an engine drops its
        state. One that ends meanwhile is left out.
        """
        if not self.received.is_set():
            for engine in _engines():
                with suppress(psutil.NoSuchProcess):
                    engine.send_signal(signal.SIGINT)


@contextmanager
def graceful_shutdown() -> Iterator[Signals]:
    """On SIGINT or SIGTERM have the engine end its steps and save its state, then end the command.

    Without an engine the signal raises Interrupted at once. With one, the run fails and
    `Signals.check` raises it. Further signals are ignored. At the end the handlers are those of
    before. In another thread than the main one no signal is handled.

    A terminal, and a CI runner that cancels a job, send the signal to the engine as well, which
    acknowledges it. At a second signal the engine drops its state, so it gets ours only if it has
    acknowledged none within a second.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals  # only the main thread may set handlers
        return

    def end(number: int, frame: FrameType | None) -> None:
        """Note the first signal and end the engine; raise Interrupted if none runs."""
        if signals.number:
            return
        signals.number = number
        if not _engines():
            signals.check()
        signals.received.wait(_WAIT_SECONDS)
        signals.end_engine()

    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.signal(number, end) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _engines() -> list[psutil.Process]:
    """The children of this process that run Pulumi's CLI; servers of the sandbox may be children,
    too. A process that ends meanwhile is left out.
    """
    engines: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if child.name() == "pulumi":
                engines.append(child)
    return engines


def up_command(stack: str, removed: Sequence[str] = ()) -> str:
    """The `fleet up --refresh` of a stack, with `--yes` and the names in `removed`, if any: teams
    that may lose something, or the stack.
    """
    return f"{FLEET} up --refresh --stack {stack}{yes_flag(removed)}"


def yes_flag(names: Sequence[str]) -> str:
    """` --yes NAME…`, which agrees to losses of these teams or of the stack; "" for no names."""
    return f" --yes {' '.join(names)}" if names else ""


def destroy_command(stack: str) -> str:
    """The `fleet destroy --refresh` of a stack, with `--yes` if nobody is at a terminal."""
    yes = "" if terminal.can_ask() else " --yes"
    return f"{FLEET} destroy --refresh{yes} --stack {stack}"
