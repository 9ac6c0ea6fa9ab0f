"""Changes between two lists of resources, and their summary: what is lost, restarted, changed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from pulumi.automation.events import StepEventMetadata

from kai_fleet.names import COMPONENTS, NAMESPACE, POLICY, QUEUES, RELEASE, STACK, TEAM
from kai_fleet.ownership.deployed import team_of
from kai_fleet.queues.amounts import is_unlimited_in_spec
from kai_fleet.releases import GPU_PROVIDERS
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs, value_at
from kai_fleet.wording import number_with_noun
from kai_fleet_cli.plan.picture import cost_of
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.recovery.state import Resource, of_step, parent_of, provider_of
from kai_fleet_policies.adapters.from_resources import QUEUE, queues_of
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack.settings.files import yaml_file

Kind = Literal["created", "changed", "replaced", "deleted"]
Section = Literal["refused", "lost", "granted", "secret", "restarted", "changed"]
# The sections of a summary, the worst first.
HEADINGS: Mapping[Section, str] = {
    "refused": "The update refuses this",
    "lost": "Lost with this",
    "granted": "May do more",
    "secret": "Secrets that differ",
    "restarted": "Restarts",
    "changed": "Changes",
}
UNSET = "unset"  # shown in place of a value that is absent
_MAX_FIELDS_PER_LINE = 3
_CHARACTERS_BEFORE_DIFFERENCE = 40
# Operations of the engine whose step has the state of the resource before it, or after it.
_HAVE_OLD_STATE = ("update", "replace", "delete")
_HAVE_NEW_STATE = ("create", "update", "replace")


@dataclass(frozen=True)
class FieldChange:
    """A field that differs. `old` or `new` is None where the field is absent or null.

    `path` is dotted, as in `spec.containers[0].image`. A key that has a dot or a slash itself is in
    brackets: `metadata.labels.[kai-fleet/team]`.
    """

    path: str
    old: object
    new: object

    def shown(self, most: int = 120) -> tuple[str, str]:
        """The old and the new value as text, each of at most `most` characters of its own.

        If one is longer, both are cut at the same place, shortly before the difference. A `…` in
        addition marks each end that is cut. A value that is absent is UNSET, an amount of a queue's
        resource that KAI takes as unlimited is `unlimited`.
        """
        old = self._text(self.old)
        new = self._text(self.new)
        start = 0
        if max(len(old), len(new)) > most:
            start = max(0, _first_difference(old, new) - _CHARACTERS_BEFORE_DIFFERENCE)
        return _excerpt(old, start, most), _excerpt(new, start, most)

    def _text(self, value: object) -> str:
        """A value in words: UNSET for None, `unlimited` for what KAI takes as that in the resources
        of a queue.
        """
        if value is None:
            return UNSET
        if "resources." in self.path and is_unlimited_in_spec(value):
            return "unlimited"
        return str(value)


def _first_difference(old: str, new: str) -> int:
    """The number of characters with which both texts begin."""
    for index, (old_character, new_character) in enumerate(zip(old, new, strict=False)):
        if old_character != new_character:
            return index
    return min(len(old), len(new))


def _excerpt(text: str, start: int, length: int) -> str:
    """At most `length` characters of a text from `start` on, and a `…` at each end that is cut."""
    end = start + length
    before = "…" if start else ""
    after = "…" if len(text) > end else ""
    return f"{before}{text[start:end]}{after}"


@dataclass(frozen=True)
class Change:
    """A change of one resource.

    `replaced` is deleted and created again; two plans alone do not tell it. `team` is "" on the
    host. `fields` are empty if the resource is created or deleted; a replaced one may have none
    either.
    `top` is the URN of the outermost component of this project around the resource, or of the
    resource itself if it is that; "" without one. `ends_gpu_pods`: it upgrades GPU drivers. `cost`
    is what a vCluster of high availability asks of the host; "" if that is as before.
    """

    kind: Kind
    urn: str
    type: str
    name: str
    team: str
    fields: tuple[FieldChange, ...] = ()
    top: str = ""
    ends_gpu_pods: bool = False
    cost: str = ""

    @property
    def label(self) -> str:
        """Type and name, as in `Release ml-kai-release`."""
        return f"{self.type.rpartition(':')[2]} {self.name}"


@dataclass(frozen=True)
class SummaryLine:
    """A line of a summary: the team (or `host`), the resource or key, and what follows for it.

    `commands` are those in `words`, as a shell takes them, in their order.
    """

    team: str
    subject: str
    words: str
    commands: tuple[str, ...] = ()

    def record(self) -> dict[str, str]:
        """The line as JSON, without `commands`."""
        return {"team": self.team, "subject": self.subject, "words": self.words}


# Lines by section.
Summary = dict[Section, list[SummaryLine]]


class Consequence(NamedTuple):
    """A row of consequences.yaml: which changes it is for, and what it says of them.

    `component` is the end of the type of the nearest component of ours above the resource, `type`
    that of the resource's own type; "" fits any. `kinds` are kinds of change with spaces between
    them. With `fields`, the path of a changed field has to begin with one of these, except
    for a replaced resource; one with `-` in front means a field that the change removes. Without a
    `section`, the change is not worth a line. `words` are "" if kind and fields say enough.
    """

    component: str
    type: str
    kinds: str
    section: Section | Literal[""]
    words: str
    fields: tuple[str, ...] = ()


_TABLE = Path(__file__).with_name("consequences.yaml")
CONSEQUENCES = tuple(
    Consequence(*row[:5], *map(tuple, row[5:])) for row in yaml_file.load(_TABLE.read_text())
)

UPGRADES_DRIVERS = Consequence(
    "", RELEASE, "changed", "lost", "upgrades the driver of each node: the pods with GPUs there end"
)
_GPU_OPERATOR = GPU_PROVIDERS["operator"]
_DRIVER_FIELDS = ("version", "chart", "values.driver.")


def difference(
    base: Sequence[Registered],
    now: Sequence[Registered],
    above: Mapping[str, str] | None = None,
    replaced: Set[str] = frozenset(),
) -> list[Change]:
    """The changes from one list of resources to another, sorted by team and URN.

    A queue tree counts as its queues. What differs in no input has a change only if it is replaced.

    Args:
        base: The resources before.
        now: The resources after.
        above: Parents by URN, of resources that are in neither list.
        replaced: URNs of resources in both lists that the engine replaces, queue trees too.
    """
    before = {resource.urn: resource for resource in with_queues(base)}
    after = {resource.urn: resource for resource in with_queues(now)}
    resources = before | after
    parents = {**(above or {}), **{urn: item.parent for urn, item in resources.items()}}
    changes = list[Change]()
    for urn, resource in resources.items():
        kind: Kind = "replaced" if {urn, urn.rpartition("#")[0]} & replaced else "changed"
        fields: tuple[FieldChange, ...] = ()
        if urn not in before:
            kind = "created"
        elif urn not in after:
            kind = "deleted"
        else:
            fields = tuple(_changed_fields(before[urn].inputs, resource.inputs))
        if kind == "changed" and not fields:
            continue
        change = Change(
            kind=kind,
            urn=urn,
            type=resource.type,
            name=resource.name,
            team=team_of(urn, parents),
            fields=fields,
            top=_outermost_component(urn, parents),
            ends_gpu_pods=_upgrades_drivers(resource, fields),
            cost=_new_cost(before.get(urn), resource),
        )
        changes.append(change)
    return sorted(changes, key=lambda change: (change.team, change.urn))


def _new_cost(before: Registered | None, after: Registered) -> str:
    """What `cost_of` says of a resource; "" if it said the same before."""
    cost = cost_of(after)
    if before is not None and cost_of(before) == cost:
        return ""
    return cost


def _upgrades_drivers(resource: Registered, fields: Sequence[FieldChange]) -> bool:
    """Whether these changes make NVIDIA's GPU operator upgrade the drivers that it installs.

    Its upgrade controller then ends the pods with GPUs, node by node (`driver.upgradePolicy`).
    """
    if resource.type != RELEASE or resource.inputs.get("name") != _GPU_OPERATOR.chart:
        return False
    if value_at(resource.inputs, "values.driver.enabled") is False:
        return False
    return any(field.path.startswith(_DRIVER_FIELDS) for field in fields)


def _outermost_component(urn: str, parents: Mapping[str, str]) -> str:
    """The URN of the outermost component of ours at or above a resource; "" without one."""
    outermost = ""
    while urn:
        if read_urn(urn).type.startswith(COMPONENTS):
            outermost = urn
        urn = parents.get(urn, "")
    return outermost


def with_queues(resources: Iterable[Registered]) -> Iterator[Registered]:
    """The resources, with the queues of each queue tree in place of the tree.

    A queue has the tree's parent and provider, and its URN with `#` and the queue's name behind it.
    """
    for resource in resources:
        if resource.type != QUEUES:
            yield resource
            continue
        for name, inputs in queues_of(resource.inputs):
            urn = f"{resource.urn}#{name}"
            yield replace(resource, urn=urn, type=QUEUE, name=name, inputs=inputs)


def _changed_fields(old: object, new: object, path: str = "") -> Iterator[FieldChange]:
    """The fields that differ, at any depth.

    Lists of different lengths count as one field; so do values of different types, such as 1 and
    true. A mapping that is absent on one side gives a change for each of its fields, an empty one
    a change of its own. An absent field and null are the same. The paths begin with `path`.
    """
    if _are_mappings(old, new):
        for key in sorted({*pairs(old), *pairs(new)}):
            step = f"[{key}]" if "." in key or "/" in key else key
            path_of_key = f"{path}.{step}" if path else step
            yield from _changed_fields(get(old, key), get(new, key), path_of_key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (old_element, new_element) in enumerate(zip(old, new, strict=True)):
            yield from _changed_fields(old_element, new_element, f"{path}[{index}]")
    elif old != new or type(old) is not type(new):
        yield FieldChange(path, old, new)


def _are_mappings(old: object, new: object) -> bool:
    """Whether both are mappings, or one is and the other is absent; not if both are empty."""
    if not old and not new:
        return False
    return isinstance(old, dict | None) and isinstance(new, dict | None)


def summary_of_steps(steps: Iterable[StepEventMetadata]) -> Summary:
    """The summary of a preview or an update, from the metadata of all its `pre` events.

    The stack itself is left out. Steps with another operation than create, update, replace and
    delete only tell parents.
    """
    before = list[Registered]()
    after = list[Registered]()
    parents = dict[str, str]()
    replaced = set[str]()
    for step in steps:
        state = step.new or step.old
        parents[step.urn] = (state and state.parent) or ""
        if step.type == STACK:
            continue
        if step.op == "replace":
            replaced.add(step.urn)
        if step.old is not None and step.op in _HAVE_OLD_STATE:
            before.append(registered(step.urn, step.type, of_step(step.old)))
        if step.new is not None and step.op in _HAVE_NEW_STATE:
            after.append(registered(step.urn, step.type, of_step(step.new)))
    return summary_of_changes(difference(before, after, parents, replaced))


def registered(urn: str, resource_type: str, resource: Resource) -> Registered:
    """A deployed resource as a plan has it, but with its inputs as they are: nothing is masked."""
    return Registered(
        urn=urn,
        type=resource_type,
        name=read_urn(urn).name,
        parent=parent_of(resource),
        provider=provider_of(resource),
        inputs=dict(resource.get("inputs") or {}),
    )


def summary_of_changes(changes: Iterable[Change], refused: Iterable[SummaryLine] = ()) -> Summary:
    """The summary of these changes, with every section, empty ones too; `refused` are lines of it.

    The lines of a section are in the order of the changes; `granted` and `secret` get none here.
    If a component of ours is created or deleted, one line stands for all its resources. Costs and
    losses in it still get lines: all losses, but of a deleted team only namespaces and releases.
    """
    changes = list(changes)
    resource_counts = Counter((change.top, change.kind) for change in changes)
    summarized = {
        (change.top, change.kind)
        for change in changes
        if change.urn == change.top and change.kind in ("created", "deleted")
    }
    summary: Summary = {section: [] for section in HEADINGS}
    for change in changes:
        component = (change.top, change.kind)
        if component in summarized and change.urn == change.top:
            summary["changed"].append(_component_line(change, resource_counts[component]))
        if change.cost:
            words = f"has {change.cost}"
            summary["changed"].append(SummaryLine(change.team or HOST, change.label, words))
        if change.type.startswith(COMPONENTS):
            continue
        consequence = _consequence_of(change)
        is_lesser = not consequence.words or not _is_told_beside_component(change)
        if component in summarized and is_lesser:
            continue
        if consequence.section:
            words = _words(change, consequence.words)
            line = SummaryLine(change.team or HOST, change.label, words)
            summary[consequence.section].append(line)
    summary["refused"] += refused
    return summary


def _is_told_beside_component(change: Change) -> bool:
    """Whether a loss keeps its line although its component, created or deleted, has one."""
    if read_urn(change.top).types != (TEAM,):
        return True
    return change.type in (NAMESPACE, RELEASE)  # a team's pods, volumes and vCluster


def _component_line(change: Change, resource_count: int) -> SummaryLine:
    """The line of a component that is created or deleted, which counts itself and all in it."""
    subject = f"team {change.name}" if change.type == TEAM else change.label
    words = f"is {change.kind}, with {number_with_noun(resource_count, 'resource')}"
    return SummaryLine(change.team or HOST, subject, words)


def _words(change: Change, consequence: str) -> str:
    """The words of a summary's line: `consequence` unless it is "", then the change's fields.

    The version is before all other fields. After three the rest are counted. Paths are without
    `spec.` and `resources.`. A resource that is created or deleted, and a policy, has no fields
    there. Without both the kind of change is named; a policy `changes what it refuses`.
    """
    if change.kind in ("created", "deleted") or not change.fields:
        return consequence or f"is {change.kind}"
    if change.type == POLICY:
        return consequence or "changes what it refuses"
    phrases = [consequence] if consequence else []
    fields = sorted(change.fields, key=lambda field: field.path != "version")
    for field in fields[:_MAX_FIELDS_PER_LINE]:
        path = field.path.removeprefix("spec.").removeprefix("resources.")
        phrases.append(f"{path} {' → '.join(field.shown(60))}")
    if len(fields) > _MAX_FIELDS_PER_LINE:
        phrases.append(number_with_noun(len(fields) - _MAX_FIELDS_PER_LINE, "more field"))
    return ", ".join(phrases)


def carries_out(change: Change) -> bool:
    """Whether a change only carries out others: its row in consequences.yaml has no section."""
    return not _consequence_of(change).section


def _consequence_of(change: Change) -> Consequence:
    """The first row of consequences.yaml that fits a change; the last one fits each.

    For an upgrade of GPU drivers UPGRADES_DRIVERS, before all rows.
    """
    if change.ends_gpu_pods:
        return UPGRADES_DRIVERS
    return next(row for row in CONSEQUENCES if _fits(row, change))


def _fits(row: Consequence, change: Change) -> bool:
    """Whether a row of consequences.yaml is for this change."""
    if change.kind not in row.kinds.split():
        return False
    if not change.type.endswith(row.type):
        return False
    if not read_urn(change.urn).component.endswith(row.component):
        return False
    if not row.fields or change.kind == "replaced":
        return True
    paths = [field.path for field in change.fields]
    paths += [f"-{field.path}" for field in change.fields if field.new is None]
    return any(path.startswith(row.fields) for path in paths)
