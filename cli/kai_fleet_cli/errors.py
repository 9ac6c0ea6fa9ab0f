"""Errors that end a command with a sentence in place of a traceback."""

import sys
from types import TracebackType


class UserError(Exception):
    """A command that cannot be done as asked; the message says what to do instead."""


def excepthook(kind: type[BaseException], why: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception; only one word for Ctrl-C while a command loads."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, why, trace)
