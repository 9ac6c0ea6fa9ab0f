"""What changed between an object as it is and as the program now wants it, and what that means.

The state keeps the inputs of the last operation and the live object it left (or
that a refresh saw). Only what the program set is compared: a field that the
server or a controller filled in is not a difference.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from provider.paths import Path, spelled
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN

_KINDS = provider_pb2.PropertyDiff
_REPLACING: Final = {
    _KINDS.ADD: _KINDS.ADD_REPLACE,
    _KINDS.DELETE: _KINDS.DELETE_REPLACE,
    _KINDS.UPDATE: _KINDS.UPDATE_REPLACE,
}
_MISSING: Final = object()
_QUANTITY = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(m|k|[KMGTPE]i|[MGTPE])?$")
_SCALES: Final = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000)} | {
    letter: Decimal(1000) ** power for power, letter in enumerate("MGTPE", start=2)
}
_BINARY: Final = {f"{letter}i": Decimal(1024) ** n for n, letter in enumerate("KMGTPE", start=1)}
# Where "1" and "1.0" are two texts, not one quantity.
_FREE_TEXT: Final = frozenset({"args", "command", "data", "env", "metadata", "stringData"})


@dataclass(frozen=True)
class Change:
    """One property that differs. `kind` is the protocol's PropertyDiff.Kind."""

    path: Path
    kind: Any

    @property
    def text(self) -> str:
        """The path as Pulumi writes it."""
        return spelled(self.path)


def parsed(text: str) -> Path:
    """The path that `text` spells, as in a resource's `ignore_changes`."""
    steps = re.findall(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+|\*)\]|([^.\[\]]+)', text)
    return tuple(
        name or (quoted.replace('\\"', '"') if quoted else (int(n) if n.isdigit() else n))
        for quoted, n, name in steps
    )


def under(path: Path, prefix: Path) -> bool:
    """Whether `path` is `prefix` or lies under it; "*" in the prefix stands for any step."""
    return len(path) >= len(prefix) and all(
        want in ("*", step) for want, step in zip(prefix, path, strict=False)
    )


def _quantity(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _QUANTITY.match(str(value).strip())
    if found is None:
        return None
    try:
        return Decimal(found[1]) * (_SCALES | _BINARY)[found[2] or ""]
    except InvalidOperation:
        return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _empty(value: Any) -> bool:
    # The server leaves out what is empty, zero or false in most kinds.
    if isinstance(value, dict):
        return all(_empty(item) for item in value.values())
    return value is None or value is False or value in ("", 0, [])


def changes(old: Any, live: Any, new: Any, path: Path = ()) -> Iterator[Change]:
    """The changes from `live`, seen through the `old` inputs, to the `new` inputs."""
    if new is UNKNOWN:
        yield Change(path, _KINDS.ADD if old is _MISSING else _KINDS.UPDATE)
    elif new is _MISSING or new is None:
        if old is not _MISSING and old is not None and live is not _MISSING:
            yield Change(path, _KINDS.DELETE)
    elif old is _MISSING or old is None:
        yield Change(path, _KINDS.ADD)
    elif isinstance(new, dict) and isinstance(old, dict):
        below = live if isinstance(live, dict) else {}
        for key in [*old, *(key for key in new if key not in old)]:
            yield from changes(
                old.get(key, _MISSING),
                below.get(key, _MISSING),
                new.get(key, _MISSING),
                (*path, key),
            )
    elif isinstance(new, list) and isinstance(old, list):
        items = live if isinstance(live, list) else []
        for index in range(max(len(old), len(new))):
            yield from changes(
                old[index] if index < len(old) else _MISSING,
                items[index] if index < len(items) else _MISSING,
                new[index] if index < len(new) else _MISSING,
                (*path, index),
            )
    elif live is _MISSING:
        if not _empty(new):
            yield Change(path, _KINDS.ADD if _same(old, new) else _KINDS.UPDATE)
    elif not _same(live, new) and not _respelled(old, live, new, path):
        yield Change(path, _KINDS.UPDATE)


def _respelled(old: Any, live: Any, new: Any, path: Path) -> bool:
    """Whether `live` is only the server's spelling of the quantity `new`: 1000m as 1, 2 as "2".

    After a refresh the old inputs are in the server's spelling too.
    """
    if any(step in _FREE_TEXT for step in path) or not (_same(old, new) or _same(old, live)):
        return False
    wanted = _quantity(new)
    return wanted is not None and wanted == _quantity(live)


def with_data(secret: dict[str, Any]) -> dict[str, Any]:
    """A Secret's inputs with `stringData`, which the server never returns, as `data`."""
    strings = secret.get("stringData")
    if not isinstance(strings, dict):
        return secret
    encoded = {
        key: base64.b64encode(value.encode()).decode() if isinstance(value, str) else value
        for key, value in strings.items()
    }
    kept = {key: value for key, value in secret.items() if key != "stringData"}
    return {**kept, "data": {**(secret.get("data") or {}), **encoded}}


def response(
    found: list[Change], replacing: list[Path], ignored: list[str], delete_first: bool
) -> Any:
    """The protocol's answer. A change under one of the paths `replacing` replaces the object."""
    skipped = [parsed(text) for text in ignored]
    answer = provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    answer.hasDetailedDiff = True
    for change in found:
        if any(under(change.path, skip) for skip in skipped):
            continue
        replaces = any(under(change.path, prefix) for prefix in replacing)
        kind = _REPLACING[change.kind] if replaces else change.kind
        answer.changes = provider_pb2.DiffResponse.DIFF_SOME
        detail = answer.detailedDiff[change.text]
        detail.kind = kind
        detail.inputDiff = change.kind == _KINDS.DELETE
        answer.diffs.append(change.text)
        if replaces:
            answer.replaces.append(change.text)
    answer.deleteBeforeReplace = delete_first and bool(answer.replaces)
    return answer
