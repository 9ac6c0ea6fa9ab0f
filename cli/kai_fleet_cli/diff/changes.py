"""What differs between two lists of resources: created, changed, replaced and deleted ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final, Literal

from kai_fleet.deployed import KAI_SCHEDULER, RELEASE, TEAM, TEAM_NAMESPACE
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.provider import QUEUES
from kai_fleet.releases import KAI, UnknownVersionError, kai, transitions
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.adapters import declared_trees

Kind = Literal["created", "changed", "replaced", "deleted"]
PROVIDER: Final = declared_trees.PROVIDER
UNSET: Final = "unset"
OTHER_CLUSTER: Final = "its cluster is another one"
_BEFORE_A_CHANGE: Final = 40
# Fields that no resource of a type can change in place; the type's beginning is enough.
_FIXED: Final = (
    (RELEASE, {"name", "namespace"}),
    (PROVIDER, {"clusterIdentifier"}),
    ("command:", {"triggers"}),
    ("kubernetes:node.k8s.io/", {"handler"}),
    ("kubernetes:core/v1:Pod", {"spec.schedulerName", "spec.containers", "spec.runtimeClassName"}),
    ("kubernetes:", {"metadata.name", "metadata.namespace"}),
)


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
class Change:
    """What happens to one resource; `team` is "" on the host."""

    kind: Kind
    urn: str
    type: str
    name: str
    team: str
    fields: tuple[FieldChange, ...] = ()
    reason: str = ""

    @property
    def label(self) -> str:
        """For example `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"

    @property
    def component(self) -> str:
        """The type of the component that it is a part of; "" for none."""
        return next((it for it in reversed(_types(self.urn)[:-1]) if "kai-fleet:" in it), "")

    def record(self) -> dict[str, Any]:
        """For the JSON format."""
        return {**vars(self), "fields": [dict(vars(item)) for item in self.fields]}


def difference(
    base: Sequence[Registered], now: Sequence[Registered], parents: Mapping[str, str] | None = None
) -> list[Change]:
    """From the resources of one plan to those of another, by team and URN.

    `parents` are those of resources that are in neither, by URN.
    """
    before, after = ({it.urn: it for it in with_queues(part)} for part in (base, now))
    every = (*before.values(), *after.values())
    parents = {**(parents or {}), **{it.urn: it.parent for it in every}}
    changes: dict[str, Change] = {}
    for urn in before.keys() | after.keys():
        old, new = before.get(urn), after.get(urn)
        either = new or old
        assert either is not None
        change = Change("changed", urn, either.type, either.name, team_of(urn, parents))
        if old is None or new is None:
            changes[urn] = replace(change, kind="created" if old is None else "deleted")
        elif fields := tuple(_fields(old.inputs, new.inputs)):
            reason = _why_replaced(old, new, {it.path.partition("[")[0] for it in fields})
            kind: Kind = "replaced" if reason else "changed"
            changes[urn] = replace(change, kind=kind, fields=fields, reason=reason)
    providers = {it.urn for it in changes.values() if (it.type, it.kind) == (PROVIDER, "replaced")}
    for urn, item in after.items():
        if item.provider in providers and urn in before:
            change = Change("replaced", urn, item.type, item.name, team_of(urn, parents))
            changes[urn] = replace(change, reason=OTHER_CLUSTER)
    return sorted(changes.values(), key=lambda change: (change.team, change.urn))


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource is a part of; "" for the host's."""
    while urn:
        if _types(urn)[-1] in (TEAM, TEAM_NAMESPACE):
            return urn.rpartition("::")[2]
        urn = parents.get(urn, "")
    return ""


def _why_kai_replaced(old: str, new: str) -> str:
    if old not in KAI:
        return f"{old} is not in the table"
    try:
        way = transitions.kai_transition(KAI[old], kai(new, untested=True))
    except UnknownVersionError:
        return f"{new} is not in the table"
    why = way.why.removeprefix(f"{old} → {new}").lstrip(": ").rpartition(" (K")
    return (why[0] or why[2]) if way.kind == "replace" else ""


def _why_replaced(before: Registered, after: Registered, changed: set[str]) -> str:
    """The reason for which a changed resource is replaced; "" where it is updated in place."""
    if after.type != RELEASE or KAI_SCHEDULER not in _types(after.urn):
        types = (fixed & changed for type_, fixed in _FIXED if after.type.startswith(type_))
        names = next(filter(None, types), ())
        return f"{', '.join(sorted(names))} cannot change in place" if names else ""
    old, new = (str(it.inputs.get("version", "")) for it in (before, after))
    if old != new:
        return _why_kai_replaced(old, new)
    values = any(path.startswith("values.") for path in changed)
    harmful = values and new in KAI and KAI[new].recreates_config
    return f"new values recreate kai-config of {new}, which stops its scheduler" if harmful else ""


def _types(urn: str) -> list[str]:
    return urn.split("::")[2].split("$") if urn.count("::") > 2 else [""]


def with_queues(resources: Sequence[Registered]) -> Iterator[Registered]:
    """The resources, with each queue of a tree in the place of the tree."""
    of_cluster = declared_trees.providers((it.type, it.urn, it.inputs) for it in resources)
    for item in resources:
        if item.type != QUEUES:
            yield item
            continue
        for queue in declared_trees.members(item.inputs, of_cluster):
            yield Registered(
                urn=f"{item.urn}#{queue.name}",
                type=declared_trees.QUEUE,
                name=queue.name,
                parent=item.parent,
                provider=queue.provider,
                inputs=dict(queue.props),
            )


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
    elif old != new or type(old) is not type(new):
        yield FieldChange(path, old, new)
