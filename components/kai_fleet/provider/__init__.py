"""The package's Pulumi provider: a resource for a whole queue tree, and functions.

A resource for each queue is too slow: a file backend writes the whole state at each step. 500
queues took 36 s, 28 s of them for the state.
"""

from importlib import metadata

from kai_fleet.names import PACKAGE


def version() -> str:
    """The version of the installed package, such as `0.4.0`.

    Raises importlib.metadata.PackageNotFoundError.
    """
    return metadata.version(PACKAGE)


class PluginError(Exception):
    """An operation failed; the text is the message for the user."""
