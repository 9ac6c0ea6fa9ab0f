"""The product's own Pulumi provider: queue trees, each as one resource, and two functions.

One resource for each queue is what the file backend cannot bear: it writes the whole state anew at
each step, so 500 queues took 36 s of which 28 s were that.

Here are its names, as the program and the engine have them, and how its operations fail.
"""

from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final

PACKAGE: Final = "kai-fleet"
QUEUES: Final = "kai-fleet:index:Queues"
SECRET: Final = "kai-fleet:index:secret"
EXISTING: Final = "kai-fleet:index:existing"


def version() -> str:
    """The version of the installed package, such as `0.4.0`."""
    return metadata.version(PACKAGE)


class PluginError(Exception):
    """An operation failed; the text is the sentence that the user reads."""


class PartialError(PluginError):
    """The resource is there, but not as wanted: the engine keeps `state`, and tries again.

    Both are properties of the SDK's provider.
    """

    def __init__(
        self, message: str, resource_id: str, state: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> None:
        super().__init__(message)
        self.resource_id = resource_id
        self.state = state
        self.inputs = inputs
