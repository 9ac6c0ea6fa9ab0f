"""What ends a command with a sentence in place of a traceback."""

import sys
from collections.abc import Callable
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
