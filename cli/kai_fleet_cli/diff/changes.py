"""What changes between two plans: created, changed field by field, replaced, deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, Final

from kai_fleet.state.deployed_state import NAMESPACE, NAMESPACE_PATCH, POLICY, TEAM, TEAM_NAMESPACE
from kai_fleet_cli.diff import transitions as words
from kai_fleet_cli.plan.offline import with_queues
from kubectl_fleet.declared.queues import UNLIMITED

Item = Mapping[str, Any]
_OF_GUARDS: Final = (POLICY, NAMESPACE, NAMESPACE_PATCH)
UNSET: Final = "unset"
_LONGEST_VALUE: Final = 120
_BEFORE_A_CHANGE: Final = 40
_WORD: Final = re.compile(r"[\w.-]+")
_BETWEEN: Final = ("or", "more")  # in a list of queues


@dataclass(frozen=True)
class FieldChange:
    """One field that differs. `old` or `new` is None where the field is not there."""

    path: str
    old: Any
    new: Any

    @property
    def shown(self) -> tuple[str, str]:
        """Both for people; of what is long, a part from a little before the difference."""
        old, new = (self._text(value) for value in (self.old, self.new))
        pairs = zip(old, new, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        begin = same - _BEFORE_A_CHANGE if same > _LONGEST_VALUE - _BEFORE_A_CHANGE else 0
        return _cut(old, begin), _cut(new, begin)

    def _text(self, value: Any) -> str:
        if value is None:
            return UNSET
        # KAI's own spelling, of a queue's quota or limit.
        return "unlimited" if value == UNLIMITED and "resources." in self.path else str(value)


@dataclass(frozen=True)
class ResourceChange:
    """One resource that is created, changed, replaced or deleted; `team` is "" on the host.

    `inputs` are those of the resource as it will be, or as it was where it is deleted.
    """

    urn: str
    type: str
    name: str
    team: str
    fields: tuple[FieldChange, ...] = ()
    reason: str = ""
    inputs: Item = field(default_factory=dict, repr=False, compare=False)

    @property
    def label(self) -> str:
        """For example `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"

    def record(self) -> dict[str, Any]:
        """For the JSON format; a resource that is created or deleted has no fields."""
        basic = {"urn": self.urn, "type": self.type, "name": self.name, "team": self.team}
        if self.reason:
            basic["reason"] = self.reason
        if not self.fields and not self.reason:
            return basic
        return basic | {"fields": [dict(vars(item)) for item in self.fields]}


@dataclass(frozen=True)
class Difference:
    """The difference of two plans' resources, each part sorted by team and URN."""

    created: tuple[ResourceChange, ...] = ()
    changed: tuple[ResourceChange, ...] = ()
    replaced: tuple[ResourceChange, ...] = ()
    deleted: tuple[ResourceChange, ...] = ()

    @property
    def parts(self) -> dict[str, tuple[ResourceChange, ...]]:
        """The four parts by name, in the order in which they are shown."""
        return dict(vars(self))

    def only(self, wanted: Callable[[ResourceChange], bool]) -> Difference:
        """The changes that are wanted, each in its part."""
        return Difference(*(tuple(filter(wanted, part)) for part in self.parts.values()))

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not any(self.parts.values())


def difference(base: Sequence[Item], now: Sequence[Item]) -> Difference:
    """From the `resources` of one plan's record to those of another."""
    before, after = _Resources(base), _Resources(now)
    created = [after.change(urn) for urn in after.by_urn.keys() - before.by_urn.keys()]
    deleted = [*_deleted(before, after)]
    changed: dict[str, ResourceChange] = {}
    replaced: dict[str, ResourceChange] = {}
    kept = before.by_urn.keys() & after.by_urn.keys()
    for urn in kept:
        old, new = before.by_urn[urn], after.by_urn[urn]
        fields = tuple(_fields(old.get("inputs", {}), new.get("inputs", {})))
        reason = words.why_replaced(
            new["type"],
            (after.parent(new) or {}).get("type", ""),
            {item.path for item in fields},
            (_version(old), _version(new)),
        )
        change = replace(after.change(urn), fields=fields, reason=reason or "")
        if reason:
            replaced[urn] = change
        elif fields:
            changed[urn] = change
    _follow(after, changed, replaced, kept)
    return Difference(
        _sorted(created), _sorted(changed.values()), _sorted(replaced.values()), _sorted(deleted)
    )


def without_echoes(whole: Difference, queues: Collection[str]) -> Difference:
    """The difference without what only repeats the names of queues, for a guard to judge by."""

    def is_echo(change: ResourceChange) -> bool:
        return change.type in _OF_GUARDS and all(
            _words(item.old, queues) == _words(item.new, queues)
            and (change.type == POLICY or item.path.startswith("metadata.annotations."))
            for item in change.fields
        )

    changed = tuple(change for change in whole.changed if not is_echo(change))
    return replace(whole, changed=changed)


def _words(value: Any, without: Collection[str]) -> list[str]:
    words = [] if value is None else _WORD.findall(str(value))
    return [word for word in words if word not in without and word not in _BETWEEN]


def _deleted(before: _Resources, after: _Resources) -> Iterator[ResourceChange]:
    """What goes, but for what an update keeps, since others may use it by now."""
    for urn in before.by_urn.keys() - after.by_urn.keys():
        change = before.change(urn)
        has_parent = before.by_urn[urn].get("parent") in after.by_urn
        if has_parent and not change.team and change.type in words.KEPT_ON_HOST:
            continue
        reason = words.why_deleted(change.type, on_host=not change.team, has_parent=has_parent)
        yield replace(change, reason=reason)


class _Resources:
    def __init__(self, resources: Sequence[Item]) -> None:
        self.by_urn = {item["urn"]: item for item in with_queues(resources)}

    def parent(self, item: Item) -> Item | None:
        return self.by_urn.get(item.get("parent", ""))

    def change(self, urn: str) -> ResourceChange:
        item = self.by_urn[urn]
        return ResourceChange(
            urn, item["type"], item["name"], self._team(item), inputs=item.get("inputs", {})
        )

    def _team(self, item: Item | None) -> str:
        while item is not None and item["type"] not in (TEAM, TEAM_NAMESPACE):
            item = self.parent(item)
        return str(item["name"]) if item is not None else ""


def _follow(
    now: _Resources,
    changed: dict[str, ResourceChange],
    replaced: dict[str, ResourceChange],
    kept: Iterable[str],
) -> None:
    """Add what is replaced because something else is: all of another cluster, and the waits."""

    def replaces(urn: str, reason: str) -> None:
        change = changed.pop(urn) if urn in changed else now.change(urn)
        replaced[urn] = replace(change, reason=reason)

    another = {urn for urn, change in replaced.items() if change.type == words.PROVIDER}
    for urn in kept:
        if now.by_urn[urn].get("provider") in another and urn not in replaced:
            replaces(urn, words.AFTER_ITS_PROVIDER)
    releases = {
        now.by_urn[urn].get("parent")
        for urn, change in replaced.items()
        if change.type == words.RELEASE
    }
    for urn in kept:
        item = now.by_urn[urn]
        waits = item["type"] == words.COMMAND and item.get("inputs", {}).get("triggers")
        if waits and item.get("parent") in releases and urn not in replaced:
            replaces(urn, words.AFTER_ITS_RELEASE)


def _cut(text: str, begin: int) -> str:
    part = text[begin : begin + _LONGEST_VALUE]
    return f"{'…' if begin else ''}{part}{'…' if begin + len(part) < len(text) else ''}"


def _version(item: Item) -> str:
    return str(item.get("inputs", {}).get("version", ""))


def _sorted(changes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
    return tuple(sorted(changes, key=lambda change: (change.team, change.urn)))


def _fields(old: Any, new: Any, path: str = "") -> Iterator[FieldChange]:
    """The leaves that differ; a list whose length differs is one leaf."""
    if (old or new) and all(it is None or isinstance(it, dict) for it in (old, new)):
        old, new = old or {}, new or {}
        for key in sorted({*old, *new}):
            inner = f"{path}.{_key(key)}" if path else _key(key)
            yield from _fields(old.get(key), new.get(key), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _fields(one, other, f"{path}[{index}]")
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old and "\n" in new:
        yield from _lines(old.splitlines(), new.splitlines(), path)
    elif old != new or type(old) is not type(new):
        yield FieldChange(path, old, new)


def _lines(old: list[str], new: list[str], path: str) -> Iterator[FieldChange]:
    """The lines of a text that differ, each by its number in the new one."""
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for offset, (one, other) in enumerate(zip_longest(old[i:j], new[k:m])):
            was, now = (None if it is None else it.strip() for it in (one, other))
            yield FieldChange(f"{path} line {k + offset + 1}", was, now)


def _key(key: str) -> str:
    return f"[{key}]" if "." in key or "/" in key else key
