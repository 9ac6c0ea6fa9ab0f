"""What a program gives a component, as plain values for the settings models.

Most of it must be known before anything is made: it decides which resources there are. What may
come from another resource, or is a secret, is kept beside the plain values as an output.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from google.protobuf.struct_pb2 import Struct, Value
from pulumi.resource import DependencyResource

from kai_fleet.provider.values import scalar, unmarked
from kai_fleet.settings.mistakes import Mistake

KeyPath = tuple[str, ...]
# Where a value may be an output that is not known yet; `*` is any key.
MAY_BE_LATER: Final[tuple[KeyPath, ...]] = (
    ("cluster", "kubeconfig"),
    ("namespace",),
    ("image",),
    ("env", "*"),
    ("huggingFaceToken",),
    ("store", "dataSource"),
    ("vcluster", "store", "dataSource"),
    ("registries", "*", "password"),
)
KNOWN_LATER: Final = "known-later"
_TOO_LATE: Final = (
    "is not known before the update, and decides what is made; write a value that is known, or"
    " declare this component in a later update"
)


@dataclass
class ComponentInputs:
    """`raw` are the inputs as a stack file would have them, `outputs` those among them that are
    secret or not known yet, by path; `unknown` tells of what should have been known.
    """

    raw: dict[str, Any] = field(default_factory=dict)
    outputs: dict[KeyPath, pulumi.Output[Any]] = field(default_factory=dict)
    unknown: list[Mistake] = field(default_factory=list)
    has_secrets: bool = False

    def at(self, *path: str) -> Any:
        """The value at a path, as an output where it is a secret or not known yet; None if none."""
        if path in self.outputs:
            return self.outputs[path]
        here: Any = self.raw
        for key in path:
            here = here.get(key) if isinstance(here, Mapping) else None
        return here

    def add(self, path: KeyPath, value: Value, secret: bool, urns: frozenset[str]) -> Any:
        """Note what is special about a value and those in it; return it plain.

        `secret` and `urns`, the resources it comes from, are those of what holds it.
        """
        inner = unmarked(value)
        content, secret, urns = inner.content, secret or inner.secret, urns | inner.urns
        self.has_secrets = self.has_secrets or secret
        may_be_later = any(
            len(path) == len(pattern)
            and all(want in ("*", key) for key, want in zip(path, pattern, strict=True))
            for pattern in MAY_BE_LATER
        )
        if content is None:
            if not may_be_later:
                self.unknown.append(Mistake(".".join(path), _TOO_LATE))
                return None
            self.outputs[path] = _output(None, known=False, secret=secret, urns=urns)
            return KNOWN_LATER
        if content.HasField("struct_value"):
            fields = content.struct_value.fields.items()
            items = {key: self.add((*path, key), item, secret, urns) for key, item in fields}
            return {key: item for key, item in items.items() if item is not None}
        if content.HasField("list_value"):
            values = enumerate(content.list_value.values)
            return [self.add((*path, str(n)), item, secret, urns) for n, item in values]
        known = scalar(content)
        if secret and may_be_later:
            self.outputs[path] = _output(known, known=True, secret=True, urns=urns)
        return known


def read(inputs: Struct, dependencies: Mapping[str, Any] | None = None) -> ComponentInputs:
    """The inputs of a component, of which null ones are left out.

    `dependencies` are those of each, as a ConstructRequest has them.
    """
    result = ComponentInputs()
    for key, value in inputs.fields.items():
        urns = frozenset(dependencies[key].urns if dependencies and key in dependencies else ())
        known = result.add((key,), value, False, urns)
        if known is not None:
            result.raw[key] = known
    return result


def _output(value: Any, *, known: bool, secret: bool, urns: frozenset[str]) -> pulumi.Output[Any]:
    resources: set[pulumi.Resource] = {DependencyResource(urn) for urn in urns}
    return pulumi.Output(resources, _resolved(value), _resolved(known), _resolved(secret))


def _resolved(value: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
