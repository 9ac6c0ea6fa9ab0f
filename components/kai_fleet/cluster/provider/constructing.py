"""Construct components for programs in other languages.

The SDK drops an argument that a component does not have, reads an object in place of which there is
something else as empty, and adds a traceback to each error.
"""

import typing
from collections.abc import Mapping
from typing import Any

from pulumi.provider import ConstructResult
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

import kai_fleet
from kai_fleet.argument_check import camel, fields_of, other_language
from kai_fleet.cluster.provider import version
from kai_fleet.names import PACKAGE


class Components(ComponentProvider):
    """Every component of this package; each checks its own arguments."""

    def __init__(self) -> None:
        served = [getattr(kai_fleet, name) for name in kai_fleet.COMPONENTS]
        super().__init__(served, PACKAGE, version=version())

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: Any = None
    ) -> ConstructResult:
        """Construct one. Raises what its constructor raises."""
        try:
            with other_language():
                return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            failed = error.inner
        raise failed

    def map_inputs(self, inputs: Any, component_def: Any) -> Any:
        """The arguments with Python's names; one that there is not keeps its own, to be refused."""
        return in_python(getattr(kai_fleet, f"{component_def.name}Args"), inputs)


def in_python(kind: Any, value: Any) -> Any:
    """A value that another language sent, as the type of an argument has it: names of fields in
    Python's spelling, none without a value, and whole numbers as such.
    """
    container, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if typing.is_typeddict(kind) and isinstance(value, Mapping):
        fields: Mapping[Any, Any] = fields_of(kind)
        names: dict[Any, Any] = {camel(name): name for name in fields}
        known = {names.get(key, key): item for key, item in value.items() if item is not None}
        return {key: in_python(fields.get(key), item) for key, item in known.items()}
    if container is dict and isinstance(value, Mapping):
        return {key: in_python(inner[1], item) for key, item in value.items()}
    if container is list and isinstance(value, list):
        return [in_python(inner[0], item) for item in value]
    return int(value) if kind is int and isinstance(value, float) else value
