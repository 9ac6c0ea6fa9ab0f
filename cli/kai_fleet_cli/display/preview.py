"""What a preview would change, on one screen: properties with old and new values.

The engine's own screen has their names.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from pulumi import automation

from kai_fleet.provider.values import UNKNOWN, parsed
from kai_fleet.wording import MASK, counted
from kai_fleet_cli.display.events import MARKS, coloured, mark, named, operation

_VERBS: Final = {sign: verb for verb, sign in MARKS.items()}
_SCREEN: Final = 40  # lines of a preview; more are folded
_MOST_FIELDS: Final = 3  # of one resource
_LONGEST: Final = 40  # characters of a value
_KNOWN_LATER: Final = (UNKNOWN, "output<string>")  # for a string, in the engine's events


class PreviewLines:
    """Hears a preview's events; `lines` is then what it says, on one screen.

    A line per resource that would change; where that is more than a screen, a line per team and
    part of the platform.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._signs: dict[str, str] = {}
        self._fields: dict[str, list[str]] = {}
        self._unchanged = 0

    def hear(self, event: automation.EngineEvent) -> None:
        """Note one event."""
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        of = step.new or step.old
        if of is not None and of.parent:
            self._parents[step.urn] = of.parent
        op = operation(step)
        self._unchanged += op == "same"
        if sign := mark(op):
            self._signs[step.urn] = "±" if self._signs.get(step.urn) == "±" else sign
        if sign in ("~", "±") and not self._fields.get(step.urn):
            # What can be said whole comes first: versions and amounts.
            self._fields[step.urn] = sorted(_differences(step), key=lambda text: "→" not in text)

    def lines(self, *, color: bool) -> list[str]:
        """The changes in the order of the preview, and how many resources stay as they are."""
        shown = [(sign, self._line(urn)) for urn, sign in self._signs.items()]
        if len(shown) > _SCREEN:
            parts = Counter((sign, self._top(urn)) for urn, sign in self._signs.items())
            shown = [
                (sign, f"{named(top)}: {counted(number, 'resource')} to {_VERBS[sign]}")
                for (sign, top), number in parts.items()
            ]
        counts = Counter(_VERBS[sign] for sign in self._signs.values())
        told = [f"{number} to {verb}" for verb, number in counts.items()]
        return [
            *(f"{coloured(sign, sign, color)} {text}" for sign, text in shown),
            f"{', '.join([*told, f'{self._unchanged} unchanged'])}.",
        ]

    def _line(self, urn: str) -> str:
        """The resource, with some of the fields that differ."""
        fields = self._fields.get(urn, [])
        more = len(fields) - _MOST_FIELDS
        what = [*fields[:_MOST_FIELDS], *([f"and {more} more"] if more > 0 else [])]
        return f"{named(urn)}{': ' if what else ''}{', '.join(what)}"

    def _top(self, urn: str) -> str:
        """The part of the stack in which a resource is: a team, its namespace, the platform."""
        while (above := self._parents.get(urn)) and "::pulumi:pulumi:Stack::" not in above:
            urn = above
        return urn


def _differences(step: Any) -> Iterator[str]:
    before, after = ({} if it is None else it.inputs for it in (step.old, step.new))
    for path in step.detailed_diff or step.diffs or ():
        old, new = _at(before, path), _at(after, path)
        if old == new or not (_plain(old) and _plain(new)):
            yield str(path)
        else:
            yield f"{path} {_shown(old)} → {_shown(new)}"


def _plain(value: Any) -> bool:
    """Whether a value is worth a place on the line: short, and no secret."""
    if isinstance(value, str):
        return len(value) <= _LONGEST and value != MASK
    return value is None or isinstance(value, bool | int | float)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return "known later" if value in _KNOWN_LATER else str(value)


def _at(inputs: Any, path: str) -> Any:
    """The value at a path of the engine's; None where there is none."""
    try:
        for step in parsed(path):
            inputs = None if isinstance(inputs, str) else inputs[step]
    except (KeyError, IndexError, TypeError):
        return None
    return inputs
