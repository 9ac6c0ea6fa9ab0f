"""The package's Pulumi provider: queue trees, each as one resource, and two functions.

One resource per queue is too slow: a file backend writes the whole state at each step, so 500
queues took 36 s, 28 s of them for that.
"""

from importlib import metadata
from typing import Any

from kai_fleet.names import PACKAGE


def version() -> str:
    """The version of the installed package, such as `0.4.0`."""
    return metadata.version(PACKAGE)


class PluginError(Exception):
    """An operation failed; the text is the message for the user.

    `partial` is the protocol's ErrorResourceInitFailed if the resource exists, but not as declared:
    the engine saves its state, and retries at the next update.
    """

    partial: Any = None
