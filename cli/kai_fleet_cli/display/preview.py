"""What a preview would change, on one screen: properties with old and new values.

The engine's own screen has their names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulumi import automation

from kai_fleet.provider.values import UNKNOWN, parsed
from kai_fleet_cli.display.events import MARKS, coloured, mark, named, operation
from kubectl_fleet.wording import MASK, counted

_VERBS: Final = {sign: verb for verb, sign in MARKS.items()}
_SCREEN: Final = 40  # lines of a preview; more are folded
_MOST_FIELDS: Final = 3  # of one resource
_LONGEST: Final = 40  # characters of a value
_KNOWN_LATER: Final = (UNKNOWN, "output<string>")  # for a string, in the engine's events


@dataclass
class _PreviewedChange:
    urn: str
    sign: str
    fields: list[str] = field(default_factory=list)

    @property
    def line(self) -> tuple[str, str]:
        """Its mark; then the resource, with some of the fields that differ."""
        more = len(self.fields) - _MOST_FIELDS
        what = [*self.fields[:_MOST_FIELDS], *([f"and {more} more"] if more > 0 else [])]
        return self.sign, f"{named(self.urn)}{': ' if what else ''}{', '.join(what)}"


class PreviewLines:
    """Hears a preview's events; `lines` is then what it says, on one screen.

    A line per resource that would change; where that is more than a screen, a line per team and
    part of the platform.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._changes: dict[str, _PreviewedChange] = {}
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
        if not sign:
            return
        change = self._changes.setdefault(step.urn, _PreviewedChange(step.urn, sign))
        change.sign = "±" if "±" in (change.sign, sign) else sign
        if not change.fields and sign in ("~", "±"):
            # What can be said whole comes first: versions and amounts.
            change.fields = sorted(_differences(step), key=lambda text: "→" not in text)

    def lines(self, *, color: bool) -> list[str]:
        """The changes in the order of the preview, and how many resources stay as they are."""
        changes = [*self._changes.values()]
        folded = len(changes) > _SCREEN
        shown = self._folded(changes) if folded else (change.line for change in changes)
        lines = [f"{coloured(sign, sign, color)} {text}" for sign, text in shown]
        count = Counter(_VERBS[change.sign] for change in changes)
        counts = [f"{number} to {verb}" for verb, number in count.items()]
        return [*lines, f"{', '.join([*counts, f'{self.unchanged} unchanged'])}."]

    def _folded(self, changes: list[_PreviewedChange]) -> Iterator[tuple[str, str]]:
        groups: dict[tuple[str, str], int] = Counter(
            (self._top(change.urn), change.sign) for change in changes
        )
        for (top, sign), number in groups.items():
            yield sign, f"{named(top)}: {counted(number, 'resource')} to {_VERBS[sign]}"

    def _top(self, urn: str) -> str:
        """The part of the stack in which a resource is: a team, its namespace, the platform."""
        while (above := self._parents.get(urn)) and "::pulumi:pulumi:Stack::" not in above:
            urn = above
        return urn


def _differences(step: Any) -> Iterator[str]:
    before = step.old.inputs if step.old is not None else {}
    after = step.new.inputs if step.new is not None else {}
    for path in step.detailed_diff or step.diffs or ():
        old, new = _at(before, path), _at(after, path)
        if old == new or not (_plain(old) and _plain(new)):
            yield str(path)
        else:
            yield f"{path} {_shown(old)} → {_shown(new)}"


def _plain(value: Any) -> bool:
    """Whether a value is worth a place on the line: short, and no secret."""
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= _LONGEST and value != MASK


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return "known later" if value in _KNOWN_LATER else str(value)


def _at(value: Any, path: str) -> Any:
    for step in parsed(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
