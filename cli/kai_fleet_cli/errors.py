"""Errors that end a command with a sentence in place of a traceback."""

import sys
from types import TracebackType


class UserError(Exception):
    """A command cannot be done as asked; the message says what to do instead."""


def excepthook(
    error_type: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print an uncaught exception on stderr as Python does, but only one word for Ctrl-C."""
    if issubclass(error_type, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(error_type, error, trace)
