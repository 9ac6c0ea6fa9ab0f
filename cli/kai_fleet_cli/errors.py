"""What ends a command with a sentence in place of a traceback."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any


class UserError(Exception):
    """A command that cannot be done as asked; the message says what to do instead."""


def run_command(app: Callable[[], Any]) -> None:
    """Run a command line; a user's mistake is one sentence on stderr and exit code 1."""
    try:
        app()
    except UserError as why:
        sys.stderr.write(f"error: {why}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; run the same command again to go on\n")
        raise SystemExit(130) from None


def ended(kind: type[BaseException], why: BaseException, trace: TracebackType | None) -> None:
    """Say what ended Python, as its `sys.excepthook`; one word for Ctrl-C while a command loads."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, why, trace)
