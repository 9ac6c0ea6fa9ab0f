"""What a person runs around `pulumi up`: `fleet …`."""

from __future__ import annotations

import sys
from types import TracebackType


def _ended(kind: type[BaseException], why: BaseException, trace: TracebackType | None) -> None:
    """Say what ended Python; in one word for Ctrl-C, which may come while a command still loads."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
    else:
        sys.__excepthook__(kind, why, trace)


sys.excepthook = _ended
