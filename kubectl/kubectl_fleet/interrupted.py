"""Ctrl-C while a command still loads: one word in place of a traceback."""

import sys
from types import TracebackType


def ended(kind: type[BaseException], why: BaseException, trace: TracebackType | None) -> None:
    """Say what ended Python, as its `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, why, trace)
