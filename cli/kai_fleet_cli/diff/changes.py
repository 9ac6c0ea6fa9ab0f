"""Changes between two lists of resources: created, changed, replaced and deleted ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, Final, Literal

from kai_fleet.deployed import team_of
from kai_fleet.names import QUEUES
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.adapters.from_resources import QUEUE, queues_of
from kai_fleet_policies.model.queues import UNLIMITED

Kind = Literal["created", "changed", "replaced", "deleted"]
UNSET: Final = "unset"


@dataclass(frozen=True)
class FieldChange:
    """A field that differs. `old` or `new` is None where the field is absent."""

    path: str
    old: Any
    new: Any

    def shown(self, most: int = 120) -> tuple[str, str]:
        """Both values as text; a long one begins a little before the difference."""
        texts = [self._text(self.old), self._text(self.new)]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
        begin = max(0, same - 40) if max(map(len, texts)) > most else 0
        lead, end = "…" if begin else "", begin + most
        old, new = (f"{lead}{text[begin:end]}{'…' if len(text) > end else ''}" for text in texts)
        return old, new

    def _text(self, value: Any) -> str:
        if value is None:
            return UNSET
        # KAI's own value, for a quota or a limit of a queue.
        return "unlimited" if value == UNLIMITED and "resources." in self.path else str(value)


@dataclass(frozen=True)
class Change:
    """A change of one resource; `team` is "" on the host. Only the engine says `replaced`.

    `top` is the URN of the outermost component of ours that it is a part of; "" for none.
    """

    kind: Kind
    urn: str
    type: str
    name: str
    team: str
    fields: tuple[FieldChange, ...] = ()
    top: str = ""

    @property
    def label(self) -> str:
        """Kind and name, as in `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"

    @property
    def component(self) -> str:
        """The type of the component that it is a part of; "" for none."""
        types = self.urn.split("::")[2].split("$") if self.urn.count("::") > 2 else []
        return next((kind for kind in reversed(types[:-1]) if "kai-fleet:" in kind), "")

    def record(self) -> dict[str, Any]:
        """The change in the JSON format."""
        return {key: value for key, value in asdict(self).items() if key != "top"}


def difference(
    base: Sequence[Registered],
    now: Sequence[Registered],
    above: Mapping[str, str] | None = None,
    replaced: Collection[str] = (),
) -> list[Change]:
    """The changes from the resources of one plan to those of another, by team and URN.

    `above` are the parents of other resources. `replaced` are URNs that the engine replaces.
    """
    before, after = ({item.urn: item for item in with_queues(part)} for part in (base, now))
    every = (*before.values(), *after.values())
    parents = {**(above or {}), **{item.urn: item.parent for item in every}}
    changes = []
    for urn in before.keys() | after.keys():
        old, new = before.get(urn), after.get(urn)
        fields = tuple(_fields(old.inputs, new.inputs)) if old and new else ()
        if (item := new or old) and (fields or urn in replaced or not (old and new)):
            kind: Kind = "changed" if fields else "created" if new else "deleted"
            kind = "replaced" if urn in replaced else kind
            place = (team_of(urn, parents), fields, _outermost(urn, parents))
            changes.append(Change(kind, urn, item.type, item.name, *place))
    return sorted(changes, key=lambda change: (change.team, change.urn))


def _outermost(urn: str, parents: Mapping[str, str]) -> str:
    """The URN of the outermost component of ours that a resource is a part of; "" for none."""
    outermost = ""
    while urn:
        if urn.rpartition("::")[0].replace("$", "::").rpartition("::")[2].startswith("kai-fleet:"):
            outermost = urn
        urn = parents.get(urn, "")
    return outermost


def with_queues(resources: Sequence[Registered]) -> Iterator[Registered]:
    """The resources, with the queues of a tree in place of the tree."""
    for item in resources:
        if item.type != QUEUES:
            yield item
            continue
        for name, inputs in queues_of(item.inputs):
            yield Registered(f"{item.urn}#{name}", QUEUE, name, item.parent, item.provider, inputs)


def _fields(old: Any, new: Any, path: str = "") -> Iterator[FieldChange]:
    """The leaves that differ; a list whose length differs is one leaf."""
    if (old or new) and all(side is None or isinstance(side, dict) for side in (old, new)):
        old, new = old or {}, new or {}
        for key in sorted({*old, *new}):
            name = f"[{key}]" if "." in key or "/" in key else key
            yield from _fields(old.get(key), new.get(key), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _fields(one, other, f"{path}[{index}]")
    elif old != new or type(old) is not type(new):
        yield FieldChange(path, old, new)
