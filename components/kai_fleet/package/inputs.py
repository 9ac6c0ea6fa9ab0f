"""What a program gives a component, as plain values for the settings models.

Most of it must be known before anything is made: it decides which resources there are. What may
come from another resource, or is a secret, is kept beside the plain values as an output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.provider.experimental.property_value import Computed, PropertyValue
from pulumi.resource import DependencyResource

from kai_fleet.provider.unknown_outputs import UNKNOWN
from kai_fleet.settings.mistakes import Mistake

Path = tuple[str, ...]
# Where a value may be an output that is not known yet; `*` is any key.
MAY_BE_LATER: Final[tuple[Path, ...]] = (
    ("cluster", "kubeconfig"),
    ("namespace",),
    ("image",),
    ("env", "*"),
    ("huggingFaceToken",),
)
_LATER: Final = "known-later"
_SAID: Final = (
    "is not known before the update, and decides what is made; write a value that is known, or"
    " declare this component in a later update"
)


@dataclass
class Given:
    """`raw` are the inputs as a stack file would have them, `later` the outputs among them by path,
    `unknown` what should have been known. `hidden`: some part of it is a secret.
    """

    raw: dict[str, Any] = field(default_factory=dict)
    later: dict[Path, pulumi.Output[Any]] = field(default_factory=dict)
    unknown: list[Mistake] = field(default_factory=list)
    hidden: bool = False

    def input(self, *path: str) -> Any:
        """The value at a path, as an output where it is a secret or not known yet."""
        if path in self.later:
            return self.later[path]
        here: Any = self.raw
        for key in path:
            here = here.get(key) if isinstance(here, Mapping) else None
        return here


def read(inputs: Mapping[str, PropertyValue]) -> Given:
    """The inputs of a component. What is null was not given."""
    given = Given()
    for key, value in inputs.items():
        found = _plain(given, (key,), value, secret=False, urns=frozenset())
        if found is not None:
            given.raw[key] = found
    return given


def _plain(
    given: Given, path: Path, value: PropertyValue, *, secret: bool, urns: frozenset[str]
) -> Any:
    secret, urns = secret or value.is_secret, urns | value.dependencies
    given.hidden = given.hidden or secret
    content = value.value
    if isinstance(content, Computed) or (isinstance(content, str) and content in UNKNOWN):
        if not _may_be_later(path):
            given.unknown.append(Mistake(".".join(path), _SAID))
            return None
        given.later[path] = _output(None, known=False, secret=secret, urns=urns)
        return _LATER
    if isinstance(content, Mapping):
        items = {
            key: _plain(given, (*path, key), item, secret=secret, urns=urns)
            for key, item in content.items()
        }
        return {key: item for key, item in items.items() if item is not None}
    if isinstance(content, Sequence) and not isinstance(content, str):
        return [
            _plain(given, (*path, str(n)), item, secret=secret, urns=urns)
            for n, item in enumerate(content)
        ]
    if isinstance(content, float) and content.is_integer():
        return int(content)
    if secret and _may_be_later(path):
        given.later[path] = _output(content, known=True, secret=True, urns=urns)
    return content


def _may_be_later(path: Path) -> bool:
    return any(
        len(path) == len(pattern)
        and all(want in ("*", key) for key, want in zip(path, pattern, strict=True))
        for pattern in MAY_BE_LATER
    )


def _output(value: Any, *, known: bool, secret: bool, urns: frozenset[str]) -> pulumi.Output[Any]:
    return pulumi.Output(
        {DependencyResource(urn) for urn in urns}, _now(value), _now(known), _now(secret)
    )


def _now(value: Any) -> asyncio.Future[Any]:
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    found.set_result(value)
    return found
