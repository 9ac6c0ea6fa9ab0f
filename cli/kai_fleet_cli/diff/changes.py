"""What changes between two plans: created, changed field by field, replaced, deleted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, Final

from kai_fleet.fleet.deployed_state import (
    COMMAND,
    NAMESPACE,
    NAMESPACE_PATCH,
    POLICY,
    RELEASE,
    TEAM,
    TEAM_NAMESPACE,
)
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet_cli.diff import consequences
from kai_fleet_cli.plan.offline import with_queues
from kai_fleet_cli.plan.recorder import Registered

_OF_GUARDS: Final = (POLICY, NAMESPACE, NAMESPACE_PATCH)
UNSET: Final = "unset"
_BEFORE_A_CHANGE: Final = 40
_WORD: Final = re.compile(r"[\w.-]+")
_BETWEEN: Final = ("or", "more")  # in a list of queues


@dataclass(frozen=True)
class FieldChange:
    """One field that differs. `old` or `new` is None where the field is not there."""

    path: str
    old: Any
    new: Any

    def shown(self, most: int = 120) -> tuple[str, str]:
        """Both for people; what is longer than `most` begins a little before the difference."""
        texts = [self._text(self.old), self._text(self.new)]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
        begin = max(0, same - _BEFORE_A_CHANGE) if max(map(len, texts)) > most else 0
        old, new = (
            f"{'…' if begin else ''}{text[begin : begin + most]}"
            f"{'…' if len(text) > begin + most else ''}"
            for text in texts
        )
        return old, new

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
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def label(self) -> str:
        """For example `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"

    def record(self) -> dict[str, Any]:
        """For the JSON format; a resource that is created or deleted has no fields."""
        record: dict[str, Any] = {
            key: getattr(self, key) for key in ("urn", "type", "name", "team")
        }
        if self.reason:
            record["reason"] = self.reason
        if self.fields or self.reason:
            record["fields"] = [dict(vars(item)) for item in self.fields]
        return record


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

    @property
    def edited(self) -> tuple[ResourceChange, ...]:
        """What is in both plans, and differs."""
        return self.changed + self.replaced

    @property
    def teams(self) -> set[str]:
        """Those of which something differs; "" for the host."""
        return {change.team for part in self.parts.values() for change in part}

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not any(self.parts.values())

    def of(self, team: str) -> Difference:
        """The changes of a team."""
        return self.only(lambda change: change.team == team)

    def only(self, wanted: Callable[[ResourceChange], bool]) -> Difference:
        """The changes that are wanted, each in its part."""
        return Difference(*(tuple(filter(wanted, part)) for part in self.parts.values()))


def difference(base: Sequence[Registered], now: Sequence[Registered]) -> Difference:
    """From the resources of one plan to those of another."""
    before, after = ({it.urn: it for it in with_queues(part)} for part in (base, now))
    kept = before.keys() & after.keys()
    edited: dict[str, ResourceChange] = {}
    for urn in kept:
        old, new = before[urn], after[urn]
        if fields := tuple(_fields(old.inputs, new.inputs)):
            above = after.get(new.parent)
            reason = consequences.why_replaced(old, new, above, {item.path for item in fields})
            edited[urn] = replace(_change(after, urn), fields=fields, reason=reason)

    def replaced(type_: str) -> Iterator[Registered]:
        return (after[it.urn] for it in edited.values() if it.reason and it.type == type_)

    def follow(wanted: Callable[[Registered], object], reason: str) -> None:
        """Add what is replaced because something else is."""
        for urn in kept:
            change = edited.get(urn) or _change(after, urn)
            if not change.reason and wanted(after[urn]):
                edited[urn] = replace(change, reason=reason)

    others = {provider.urn for provider in replaced(consequences.PROVIDER)}
    follow(lambda it: it.provider in others, consequences.AFTER_ITS_PROVIDER)
    above_releases = {release.parent for release in replaced(RELEASE)}
    follow(
        lambda it: it.type == COMMAND and it.inputs.get("triggers") and it.parent in above_releases,
        consequences.AFTER_ITS_RELEASE,
    )
    return Difference(
        _sorted(_change(after, urn) for urn in after.keys() - before.keys()),
        _sorted(change for change in edited.values() if not change.reason),
        _sorted(change for change in edited.values() if change.reason),
        _sorted(_deleted(before, after)),
    )


def without_echoes(whole: Difference, queues: Collection[str]) -> Difference:
    """The difference without what only repeats the names of queues, for a guard to judge by."""

    def words(value: Any) -> list[str]:
        found = [] if value is None else _WORD.findall(str(value))
        return [word for word in found if word not in queues and word not in _BETWEEN]

    def is_echo(change: ResourceChange) -> bool:
        return change.type in _OF_GUARDS and all(
            words(item.old) == words(item.new)
            and (change.type == POLICY or item.path.startswith("metadata.annotations."))
            for item in change.fields
        )

    return replace(whole, changed=tuple(it for it in whole.changed if not is_echo(it)))


def _change(plan: Mapping[str, Registered], urn: str) -> ResourceChange:
    item = plan[urn]
    above: Registered | None = item
    while above is not None and above.type not in (TEAM, TEAM_NAMESPACE):
        above = plan.get(above.parent)
    team = above.name if above is not None else ""
    return ResourceChange(urn, item.type, item.name, team, inputs=item.inputs)


def _deleted(
    before: Mapping[str, Registered], after: Mapping[str, Registered]
) -> Iterator[ResourceChange]:
    """What goes, but for what an update keeps, since others may use it by now."""
    for urn in before.keys() - after.keys():
        change = _change(before, urn)
        if not change.team and change.type in consequences.KEPT_ON_HOST:
            if before[urn].parent not in after:
                yield replace(change, reason=consequences.LEFT_BEHIND)
        elif change.type == consequences.CRD and before[urn].parent in after:
            yield replace(change, reason=consequences.OF_OLD_KAI)
        else:
            yield change


def _sorted(changes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
    return tuple(sorted(changes, key=lambda change: (change.team, change.urn)))


def _fields(old: Any, new: Any, path: str = "") -> Iterator[FieldChange]:
    """The leaves that differ; a list whose length differs is one leaf."""
    if (old or new) and all(it is None or isinstance(it, dict) for it in (old, new)):
        old, new = old or {}, new or {}
        for key in sorted({*old, *new}):
            name = f"[{key}]" if "." in key or "/" in key else key
            yield from _fields(old.get(key), new.get(key), f"{path}.{name}" if path else name)
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
