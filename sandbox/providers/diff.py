"""What changed between a live object and what the program wants, and whether that replaces it.

As the official plugin does it: the live object is cut to what the old inputs mention, and compared
with the new inputs.
"""

from __future__ import annotations

import base64
import pathlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import yaml
from pulumi.runtime.proto import provider_pb2

from kai_fleet.components.settings.quantities import parse_quantity
from kai_fleet.provider.paths import Path, parsed, spelled
from sandbox.providers.cluster import Kind
from sandbox.providers.values import UNKNOWN

_KINDS: Final = provider_pb2.PropertyDiff
_REPLACING: Final = {
    _KINDS.ADD: _KINDS.ADD_REPLACE,
    _KINDS.DELETE: _KINDS.DELETE_REPLACE,
    _KINDS.UPDATE: _KINDS.UPDATE_REPLACE,
}
_MISSING: Final = object()
# Where "1" and "1.0" are two texts, not one quantity.
_TEXTS: Final = frozenset({"args", "command", "data", "env", "metadata"})

_IDENTITY: Final = ("metadata.name", "metadata.namespace")
_FIXED: Final = yaml.safe_load(
    pathlib.Path(__file__).with_name("replacing_fields.yaml").read_text(encoding="utf-8")
)
_MUTABLE: Final = (("spec", "tolerations"), ("spec", "activeDeadlineSeconds"))  # of a Pod


def replaces(kind: Kind, path: Path) -> bool:
    """Whether a change at the path makes a new object."""
    if kind.name == "Pod" and path[:2] in _MUTABLE:
        return False
    prefixes = (*_IDENTITY, *_FIXED.get(kind.group, {}).get(kind.name, ()))
    return any(path[: len(parts)] == parts for parts in (tuple(it.split(".")) for it in prefixes))


def changes(old: Any, live: Any, new: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Path and kind of each change from `live`, of which `old` inputs are seen, to `new` ones."""
    if isinstance(new, dict) and isinstance(old, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from changes(
                old.get(key, _MISSING), _at(live, key), new.get(key, _MISSING), (*path, key)
            )
    elif isinstance(new, list) and isinstance(old, list):
        for index in range(max(len(old), len(new))):
            sides = [_at(side, index) for side in (old, live, new)]
            yield from changes(sides[0], sides[1], sides[2], (*path, index))
    elif new is _MISSING or new is None:
        if old not in (_MISSING, None) and live is not _MISSING:
            yield path, _KINDS.DELETE
    elif old is _MISSING or old is None:
        yield path, _KINDS.ADD
    elif live is _MISSING:
        if not _empty(new):
            yield path, _KINDS.ADD
    elif new == UNKNOWN or not _same(live, new, path):
        yield path, _KINDS.UPDATE


def _at(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    inside = isinstance(value, list) and isinstance(step, int) and step < len(value)
    return value[step] if inside else _MISSING


def _empty(value: Any) -> bool:
    """The server leaves out what is empty, zero or false in most kinds."""
    if isinstance(value, dict):
        return all(map(_empty, value.values()))
    return not value


def _same(one: Any, other: Any, path: Path) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if one == other:
        return True
    return not _TEXTS.intersection(path) and None is not _quantity(one) == _quantity(other)


def _quantity(value: Any) -> Decimal | None:
    """1000m is 1, and 2 is "2": the server writes quantities in its own way."""
    try:
        return parse_quantity(value)
    except ValueError:
        return None


def with_data(secret: dict[str, Any]) -> dict[str, Any]:
    """A Secret's inputs with `stringData`, which the server never returns, as `data`."""
    strings = secret.get("stringData")
    if not isinstance(strings, dict) or secret.get("kind") != "Secret":
        return secret
    encoded = {
        key: text if text == UNKNOWN else base64.b64encode(str(text).encode()).decode()
        for key, text in strings.items()
    }
    kept = {key: value for key, value in secret.items() if key != "stringData"}
    return {**kept, "data": {**(secret.get("data") or {}), **encoded}}


def response(kind: Kind | None, found: list[tuple[Path, Any]], ignored: list[str]) -> Any:
    """The protocol's answer. Without a kind, as of releases, name and namespace replace."""
    skipped = [parsed(text) for text in ignored]
    answer = provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_NONE, hasDetailedDiff=True
    )
    for path, change in found:
        if any(path[: len(skip)] == skip for skip in skipped):
            continue
        fixed = replaces(kind, path) if kind else path in (("name",), ("namespace",))
        answer.changes = provider_pb2.DiffResponse.DIFF_SOME
        answer.diffs.append(spelled(path))
        detail = answer.detailedDiff[spelled(path)]
        detail.kind = _REPLACING[change] if fixed else change
        detail.inputDiff = change == _KINDS.DELETE
        if fixed:
            answer.replaces.append(spelled(path))
    return answer
