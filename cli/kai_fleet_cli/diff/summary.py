"""The summary of a change: what is refused, lost, restarted and changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kai_fleet.names import NAMESPACE, POLICY, RELEASE, TEAM
from kai_fleet.settings.files import yaml_file
from kai_fleet.wording import counted
from kai_fleet_cli.diff.changes import Change, difference
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.model.cluster import HOST

Part = Literal["refused", "lost", "restarted", "changed"]
HEADINGS: Final[Mapping[Part, str]] = {
    "refused": "The update refuses this",
    "lost": "Lost with this",
    "restarted": "Restarts",
    "changed": "Changes",
}
_FEW_FIELDS: Final = 3
# The states that a step of the engine has, by its operation.
_BOTH: Final = ("old", "new")
_SIDES: Final = {"create": ("new",), "update": _BOTH, "replace": _BOTH, "delete": ("old",)}


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


@dataclass(frozen=True)
class Item:
    """A line: the team (or `host`), the resource or the subject, and its consequence."""

    team: str
    subject: str
    words: str


@dataclass(frozen=True)
class Summary:
    """The four lists, each by team."""

    refused: tuple[Item, ...] = ()
    lost: tuple[Item, ...] = ()
    restarted: tuple[Item, ...] = ()
    changed: tuple[Item, ...] = ()

    @property
    def parts(self) -> dict[Part, tuple[Item, ...]]:
        """The lists that have something in them, the worst first."""
        return {part: items for part in HEADINGS if (items := getattr(self, part))}

    def record(self) -> dict[str, Any]:
        """The summary in the JSON format."""
        return asdict(self)

    def __str__(self) -> str:
        """`1 refused, 2 lost`; for a verdict."""
        return ", ".join(f"{len(items)} {part}" for part, items in self.parts.items())


def of_steps(steps: Iterable[Any]) -> Summary:
    """The summary of a preview or an update, from the metadata of all its `pre` events."""
    sides: dict[str, list[Registered]] = {"old": [], "new": []}
    parents, replaced = dict[str, str](), set[str]()
    for step in steps:
        operation = str(getattr(step.op, "value", step.op))
        state = step.new or step.old
        parents[step.urn] = (state and state.parent) or ""
        replaced |= {step.urn} if operation == "replace" else set()
        for side in _SIDES.get(operation, ()):
            resource = getattr(step, side)
            provider = (resource.provider or "").rpartition("::")[0]
            places = (step.urn.rpartition("::")[2], resource.parent or "", provider)
            sides[side].append(Registered(step.urn, step.type, *places, dict(resource.inputs)))
    return of_changes(difference(sides["old"], sides["new"], parents, replaced))


def of_changes(changes: Iterable[Change], refused: Iterable[Item] = ()) -> Summary:
    """The four lists of these changes. What comes or goes with a component of ours is one line."""
    every = list(changes)
    counts = Counter((change.top, change.kind) for change in every)
    ends = [change for change in every if change.kind in ("created", "deleted")]
    tops = {(change.top, change.kind) for change in ends if change.urn == change.top}
    lists: dict[Part, list[Item]] = {part: [] for part in HEADINGS}
    for change in every:
        top = (change.top, change.kind)
        if top in tops and change.urn == change.top:
            name = f"team {change.name}" if change.type == TEAM else change.label
            words = f"is {change.kind}, with {counted(counts[top], 'resource')}"
            lists["changed"].append(Item(change.team or HOST, name, words))
        if change.type.startswith("kai-fleet:"):
            continue
        row = next((row for row in CONSEQUENCES if _fits(row, change)), None)
        part = row.part if row else "changed"
        # Of a removed team only its pods and volumes; of shared components every loss.
        most = change.type in (NAMESPACE, RELEASE) or f"::{TEAM}::" not in change.top
        if part and (top not in tops or (row and most)):
            lists[part].append(_item(change, row.words if row else ""))
    lists["refused"] = list(refused)
    return Summary(*map(tuple, lists.values()))


def _fits(row: Consequence, change: Change) -> bool:
    """Whether a row is about a change."""
    if change.kind not in row.kinds.split() or not change.type.endswith(row.type):
        return False
    paths = [field.path for field in change.fields]
    paths += [f"-{field.path}" for field in change.fields if field.new is None]
    any_field = not row.fields or change.kind == "replaced"
    of_fields = any_field or any(path.startswith(row.fields) for path in paths)
    return of_fields and change.component.endswith(row.component)


def _item(change: Change, consequence: str) -> Item:
    words = [consequence]
    if change.kind in ("created", "deleted"):
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
