"""The product's own Pulumi provider: queue trees, each as one resource, and two functions.

One resource for each queue is what the file backend cannot bear: it writes the whole state anew at
each step, so 500 queues took 36 s of which 28 s were that.

Here are its version and how its operations fail.
"""

from importlib import metadata
from typing import Any

from kai_fleet.deployed import PACKAGE


def version() -> str:
    """The version of the installed package, such as `0.4.0`."""
    return metadata.version(PACKAGE)


class PluginError(Exception):
    """An operation failed; the text is the sentence that the user reads.

    `partial` is the protocol's ErrorResourceInitFailed where the resource is there, but not as
    declared: the engine keeps what it says, and tries again at the next update.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial
