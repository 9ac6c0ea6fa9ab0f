"""Changes between two lists of resources, and what follows: refused, lost, restarted, changed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kai_fleet.deployed import team_of
from kai_fleet.names import NAMESPACE, POLICY, QUEUES, RELEASE, STACK, TEAM
from kai_fleet.releases import GPU_PROVIDERS
from kai_fleet.settings.files import yaml_file
from kai_fleet.urns import provider_urn, read_urn
from kai_fleet.values import value_at
from kai_fleet.wording import counted
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.adapters.from_resources import QUEUE, queues_of
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import UNLIMITED

Kind = Literal["created", "changed", "replaced", "deleted"]
Part = Literal["refused", "lost", "granted", "secret", "restarted", "changed"]
HEADINGS: Final[Mapping[Part, str]] = {
    "refused": "The update refuses this",
    "lost": "Lost with this",
    "granted": "May do more",
    "secret": "Secrets that differ",
    "restarted": "Restarts",
    "changed": "Changes",
}
UNSET: Final = "unset"
_FEW_FIELDS: Final = 3
# The states that a step of the engine has, by its operation.
_BOTH: Final = ("old", "new")
_SIDES: Final = {"create": ("new",), "update": _BOTH, "replace": _BOTH, "delete": ("old",)}


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
    ends_gpu_pods: bool = False

    @property
    def label(self) -> str:
        """Kind and name, as in `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"


@dataclass(frozen=True)
class Item:
    """A line: the team (or `host`), the resource or the subject, and its consequence."""

    team: str
    subject: str
    words: str


# The lines by their list, the worst list first.
Summary = dict[Part, list[Item]]


class Consequence(NamedTuple):
    """A row of consequences.yaml; without a `part`, the change is not worth a line."""

    component: str
    type: str
    kinds: str
    part: Part | Literal[""]
    words: str
    fields: tuple[str, ...] = ()


CONSEQUENCES: Final = tuple(
    Consequence(*row[:5], *map(tuple, row[5:]))
    for row in yaml_file.load(Path(__file__).with_name("consequences.yaml").read_text())
)

UPGRADES_DRIVERS: Final = Consequence(
    "", RELEASE, "changed", "lost", "upgrades the driver of each node: the pods with GPUs there end"
)
_OPERATOR: Final = GPU_PROVIDERS["operator"]
_OF_DRIVER: Final = ("version", "chart", "values.driver.")


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
            ends = new is not None and _upgrades_drivers(new, fields)
            changes.append(Change(kind, urn, item.type, item.name, *place, ends))
    return sorted(changes, key=lambda change: (change.team, change.urn))


def _upgrades_drivers(item: Registered, fields: Sequence[FieldChange]) -> bool:
    """Whether a release is of NVIDIA's operator, and upgrades the driver that this installs.

    Its upgrade controller ends the pods with GPUs on each node for it (`driver.upgradePolicy`).
    """
    installs = value_at(item.inputs, "values.driver.enabled") is not False
    changed = any(field.path.startswith(_OF_DRIVER) for field in fields)
    is_operator = item.inputs.get("name") == _OPERATOR.chart
    return item.type == RELEASE and is_operator and installs and changed


def _outermost(urn: str, parents: Mapping[str, str]) -> str:
    """The URN of the outermost component of ours that a resource is a part of; "" for none."""
    outermost = ""
    while urn:
        if read_urn(urn).type.startswith("kai-fleet:"):
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


def of_steps(steps: Iterable[Any]) -> Summary:
    """The summary of a preview or an update, from the metadata of all its `pre` events."""
    sides: dict[str, list[Registered]] = {"old": [], "new": []}
    parents, replaced = dict[str, str](), set[str]()
    for step in steps:
        operation = str(getattr(step.op, "value", step.op))
        state = step.new or step.old
        parents[step.urn] = (state and state.parent) or ""
        replaced |= {step.urn} if operation == "replace" else set()
        for side in _SIDES.get(operation, ()) if step.type != STACK else ():
            resource = getattr(step, side)
            provider = provider_urn(resource.provider or "")
            places = (read_urn(step.urn).name, resource.parent or "", provider)
            sides[side].append(Registered(step.urn, step.type, *places, dict(resource.inputs)))
    return of_changes(difference(sides["old"], sides["new"], parents, replaced))


def of_changes(changes: Iterable[Change], refused: Iterable[Item] = ()) -> Summary:
    """The lists of these changes. What comes or goes with a component of ours is one line."""
    every = list(changes)
    counts = Counter((change.top, change.kind) for change in every)
    ends = [change for change in every if change.kind in ("created", "deleted")]
    tops = {(change.top, change.kind) for change in ends if change.urn == change.top}
    lists: Summary = {part: [] for part in HEADINGS}
    for change in every:
        top = (change.top, change.kind)
        if top in tops and change.urn == change.top:
            name = f"team {change.name}" if change.type == TEAM else change.label
            words = f"is {change.kind}, with {counted(counts[top], 'resource')}"
            lists["changed"].append(Item(change.team or HOST, name, words))
        if change.type.startswith("kai-fleet:"):
            continue
        row = UPGRADES_DRIVERS if change.ends_gpu_pods else _row_of(change)
        part = row.part if row else "changed"
        # Of a removed team only its pods and volumes; of shared components every loss.
        most = change.type in (NAMESPACE, RELEASE) or read_urn(change.top).types != (TEAM,)
        if part and (top not in tops or (row and most)):
            lists[part].append(_item(change, row.words if row else ""))
    lists["refused"] += refused
    return lists


def _fits(row: Consequence, change: Change) -> bool:
    """Whether a row is about a change."""
    if change.kind not in row.kinds.split() or not change.type.endswith(row.type):
        return False
    paths = [field.path for field in change.fields]
    paths += [f"-{field.path}" for field in change.fields if field.new is None]
    any_field = not row.fields or change.kind == "replaced"
    above = read_urn(change.urn).above if row.component else ()
    component = next((kind for kind in reversed(above) if "kai-fleet:" in kind), "")
    return component.endswith(row.component) and (
        any_field or any(path.startswith(row.fields) for path in paths)
    )


def carries_out(change: Change) -> bool:
    """Whether a change only carries out others: what it shows are digests and triggers."""
    row = _row_of(change)
    return row is not None and not row.part


def _row_of(change: Change) -> Consequence | None:
    return next((row for row in CONSEQUENCES if _fits(row, change)), None)


def _item(change: Change, consequence: str) -> Item:
    words = [consequence]
    if change.kind in ("created", "deleted") or not change.fields:
        words = [consequence or f"is {change.kind}"]
    elif change.type == POLICY:
        words = [consequence or "changes what it refuses"]
    else:
        fields = sorted(change.fields, key=lambda field: field.path != "version")
        for field in fields[:_FEW_FIELDS]:
            path = field.path.removeprefix("spec.").removeprefix("resources.")
            words.append(f"{path} {' → '.join(field.shown(60))}")
        if len(fields) > _FEW_FIELDS:
            words.append(counted(len(fields) - _FEW_FIELDS, "more field"))
    return Item(change.team or HOST, change.label, ", ".join(filter(None, words)))
