"""What a preview found, on one screen: a line per resource that would change, with what of it.

Where that is more than a screen, a line per team and part of the platform.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulumi import automation

from kai_fleet.provider.values import parsed
from kai_fleet_cli.display.narration import coloured, mark, named, operation

SCREEN: Final = 40  # lines; more are folded
_CHANGES: Final = 3  # of one resource
_LONGEST: Final = 40  # characters of a value
_WORDS: Final = {"+": "create", "~": "update", "-": "delete", "±": "replace", "=": "import"}
_SECRET: Final = "[secret]"
# The engine's marks for a string that only the update will know.
_UNKNOWN: Final = ("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "output<string>")


@dataclass
class _Change:
    urn: str
    sign: str
    what: list[str] = field(default_factory=list)


class PreviewLines:
    """Hears a preview's events; `lines` are then what it found."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._changes: dict[str, _Change] = {}
        self.unchanged = 0

    def hear(self, event: automation.EngineEvent) -> None:
        """Note one event."""
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        of = step.new or step.old
        if of is not None and of.parent:
            self._parents[step.urn] = of.parent
        op = operation(step)
        if op == "same":
            self.unchanged += 1
        sign = mark(op)
        if sign == " ":
            return
        change = self._changes.setdefault(step.urn, _Change(step.urn, sign))
        change.sign = "±" if "±" in (change.sign, sign) else sign
        if not change.what and sign in ("~", "±"):
            # What can be said whole comes first: versions and amounts.
            change.what = sorted(_differences(step), key=lambda said: "→" not in said)

    def lines(self, *, color: bool) -> list[str]:
        """The changes in the order of the preview, and how many resources stay as they are."""
        changes = [*self._changes.values()]
        shown = self._folded(changes) if len(changes) > SCREEN else map(_line, changes)
        found = [f"{coloured(sign, sign, color)} {text}" for sign, text in shown]
        count = Counter(_WORDS[change.sign] for change in changes)
        told = [f"{number} to {word}" for word, number in count.items()]
        return [*found, f"{', '.join([*told, f'{self.unchanged} unchanged'])}."]

    def _folded(self, changes: list[_Change]) -> Iterator[tuple[str, str]]:
        groups: dict[tuple[str, str], int] = Counter(
            (self._top(change.urn), change.sign) for change in changes
        )
        for (top, sign), number in groups.items():
            of = "1 resource" if number == 1 else f"{number} resources"
            yield sign, f"{named(top)}: {of} to {_WORDS[sign]}"

    def _top(self, urn: str) -> str:
        """The part of the stack in which a resource is: a team, its namespace, the platform."""
        while (above := self._parents.get(urn)) and "::pulumi:pulumi:Stack::" not in above:
            urn = above
        return urn


def _line(change: _Change) -> tuple[str, str]:
    more = len(change.what) - _CHANGES
    what = [*change.what[:_CHANGES], *([f"and {more} more"] if more > 0 else [])]
    return change.sign, f"{named(change.urn)}{': ' if what else ''}{', '.join(what)}"


def _differences(step: Any) -> Iterator[str]:
    before = step.old.inputs if step.old is not None else {}
    after = step.new.inputs if step.new is not None else {}
    for path in step.detailed_diff or step.diffs or ():
        old, new = _at(before, path), _at(after, path)
        if old == new or not (_plain(old) and _plain(new)):
            yield str(path)
        else:
            yield f"{path} {_said(old)} → {_said(new)}"


def _plain(value: Any) -> bool:
    """Whether a value is worth a place on the line: short, and no secret."""
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= _LONGEST and value != _SECRET


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return "known later" if value in _UNKNOWN else str(value)


def _at(value: Any, path: str) -> Any:
    for step in parsed(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
