"""Findings from the faults of checks: one for each cause, with the objects that it affects.

The texts are in tables: `causes.yaml` by the id of a cause, and those of `kai_usage` by patterns of
what Kubernetes, vCluster, KAI and schedulers write into events, conditions and container statuses.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias

import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.wording import listed, plain
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.model.cluster import HOST
from kai_usage import messages, scheduling
from kai_usage.scheduling import NOTHING, Around

NVIDIA_CLASS: Final = "nvidia"  # the RuntimeClass of messages that name none
_SHOWN_NAMES: Final = 10  # in the text of a finding
_NAMES_IN_COMMAND: Final = 20  # the next run shows the others
_FIX_CHARACTERS: Final = 20_000
_QUOTED_CHARACTERS: Final = 240  # of a message that a cause quotes
_DEFAULT_COLUMNS: Final = {
    "kind": "pod",
    "check": "",
    "level": "mandatory",
    "key": "",
    "effect_of": "",
}
_OVERRIDABLE_COLUMNS: Final = ("kind", "check", "level", "effect_of")


@dataclass(frozen=True)
class Fault(Finding):
    """A finding about one object. `name` is `NAMESPACE/NAME` for an object in a namespace.

    Args:
        key: Identifies the cause if its text differs from object to object. Faults with the same
            key become one finding.
        effect_of: Subject of the fault that causes this one, if there may be such a fault, on the
            host or in the same cluster; else "".
    """

    key: str = ""
    effect_of: str = ""


Faults: TypeAlias = Iterator[Fault]


class Why(NamedTuple):
    """Why an object is not ready.

    Args:
        cause: The reason as a predicate.
        fix: What to do, "" if that is unknown.
        effect_of: Subject of the fault that is the cause, "" if there is none.
    """

    cause: str
    fix: str
    effect_of: str = ""


class _Placeholders(dict[str, object]):
    """Values for the placeholders of a text. A placeholder without a value stays in the text."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


def fault(cause_id: str, cluster: Cluster, name: str, **values: object) -> Fault:
    """Return the fault of one object with the texts that `causes.yaml` has for a cause.

    Raises KeyError for a `cause_id` that is not in the table.

    Args:
        name: The object's name.
        values: Values of placeholders. `kind`, `check`, `level` and `effect_of` among them also
            replace the column of that name.
    """
    columns = {**_DEFAULT_COLUMNS, **_causes()[cause_id]}
    placeholders = _placeholders(cluster, **values)
    texts = {column: template.format_map(placeholders) for column, template in columns.items()}
    for column in _OVERRIDABLE_COLUMNS:
        if column in values:
            texts[column] = str(values[column])
    return Fault(
        level=_level(texts["level"], cluster),
        path=cluster.name,
        kind=texts["kind"],
        name=name,
        cause=texts["cause"],
        fix=texts["fix"],
        check=texts["check"],
        key=texts["key"],
        effect_of=texts["effect_of"],
    )


def _level(name: str, cluster: Cluster) -> Level:
    """Return the level of that name, but `mandatory` for `info` on the host.

    `info` is for what a tenant did in its vCluster, and the host has no tenants.
    """
    level = Level(name)
    if level is Level.INFO and cluster.name == HOST:
        return Level.MANDATORY
    return level


def explain(
    cluster: Cluster,
    kind: str,
    name: str,
    messages: Iterable[str],
    check: str = "",
    about: Around = NOTHING,
) -> Fault | None:
    """Return a fault with the meaning of the first message that a table knows; None without one.

    Its level is `info` if the cause is in `tenants.yaml`, or if a list that would tell whether the
    tenant caused it was not read; else `mandatory`.

    Args:
        kind: Kind of the object that the messages are about.
        name: Its name.
        check: Name of the check; "" for the name of the row that matches.
        about: The objects around a pod that has no node.
    """
    for message in messages:
        meaning = _meaning(cluster, message) or _scheduler_meaning(cluster, message, about)
        if meaning is None:
            continue
        by_tenant = meaning.unread or meaning.row_name in _tenant_causes()
        return Fault(
            level=_level("info" if by_tenant else "mandatory", cluster),
            path=cluster.name,
            kind=kind,
            name=name,
            cause=meaning.cause,
            fix=meaning.fix,
            check=check or meaning.row_name,
            key=meaning.key,
            effect_of=meaning.effect_of,
        )
    return None


class _Meaning(NamedTuple):
    """What a message means.

    Args:
        row_name: Name of the row whose pattern matched.
        cause: The cause for a fault; `fix`, `key` and `effect_of` likewise.
        unread: Why it is unknown whether the platform or the tenant is the cause; "" if known.
    """

    row_name: str
    cause: str
    fix: str
    key: str
    effect_of: str = ""
    unread: str = ""


def _meaning(cluster: Cluster, message: str) -> _Meaning | None:
    """Return the meaning of a message by the first row of `messages.yaml` that matches it."""
    known = messages.meaning(message, "operator")
    if known is None:
        return None
    row, values = known
    placeholders = _placeholders(cluster, **values)
    cause = " ".join(row.cause.format_map(placeholders).split())
    return _Meaning(
        row_name=row.name,
        cause=cause,
        fix=row.fix.format_map(placeholders),
        key=row.name if "{text}" in row.cause else "",
        effect_of=_causing_subject(row.name, values["what"]),
    )


def _scheduler_meaning(cluster: Cluster, message: str, about: Around) -> _Meaning | None:
    """Return the meaning of a scheduler's message by `scheduling.yaml`; None if no row matches.

    The key leaves the quoted message out: the nodes that a scheduler counts differ from pod to pod.
    """
    known = scheduling.meaning(message, about)
    if known is None:
        return None
    row, values = known
    placeholders = _placeholders(cluster, **values)
    cause = row.cause.format_map(placeholders)
    fix = row.fix.format_map(placeholders)
    key = row.cause.format_map({**values, "text": ""})
    if not about.unread or not scheduling.is_of_nodes(row):
        return _Meaning(row.name, cause, fix, key)
    return _Meaning(
        row_name=row.name,
        cause=f"{cause.rstrip('.')}. What its nodes and volumes say is not known: {about.unread}",
        fix="" if scheduling.names_objects(row) else fix,
        key=key + about.unread,
        unread=about.unread,
    )


def _causing_subject(row_name: str, runtime_class: str) -> str:
    """Return the subject of the fault that causes what a message reports; "" if there is none."""
    if row_name != "runtime-class":
        return ""
    return f"RuntimeClass {runtime_class or NVIDIA_CLASS}"


def reason(cluster: Cluster, *objects: KubeObject) -> Why:
    """Return why objects are not ready, by the first of their messages that a table knows.

    Without such a message the cause quotes the first message, or says that there is none or that
    the events were not read, and the fix is "".
    """
    if unread := cluster.unread("events", "bound"):
        messages = list[str]()
        for item in objects:
            messages.extend(filter(None, item.messages))
        fallback = f"why is not known: {unread}"
    else:
        messages = cluster.messages_of(*objects)
        fallback = "nothing gives a reason"
    waiting_pod = next((item for item in objects if item.unscheduled), None)
    about = NOTHING if waiting_pod is None else cluster.around(waiting_pod)
    known = explain(cluster, "", "", messages, about=about)
    if known is not None:
        return Why(known.cause, known.fix, known.effect_of)
    first_message = next(iter(messages), fallback)
    return Why(first_message[:_QUOTED_CHARACTERS], "")


def being_deleted(
    cluster: Cluster,
    item: KubeObject,
    kind: str,
    resource: str,
    *,
    declared: bool = True,
) -> Fault:
    """Return the fault of an object that is being deleted, with the finalizers that keep it.

    `declared`: the stack declares the object, so the fix creates it again.
    """
    cause_id = "going-kept" if item.finalizers else "going"
    if not declared:
        cause_id += "-undeclared"
    return fault(
        cause_id,
        cluster,
        item.namespaced_name if item.namespace else item.name,
        kind=kind,
        kinds=resource,
        at=f"-n {item.namespace} " if item.namespace else "",
        finalizers=", ".join(item.finalizers),
    )


CheckAndCluster: TypeAlias = tuple[str, str]  # the names of both
FaultsByCheck: TypeAlias = Mapping[CheckAndCluster, Sequence[Fault]]
_PathAndSubject: TypeAlias = tuple[str, str]


def without_effects(faults_by_check: FaultsByCheck) -> FaultsByCheck:
    """Leave out each fault that another one causes, and append its subject to the other's cause.

    A check whose faults are all left out is left out, too: it is not well.
    """
    subjects = set[_PathAndSubject]()
    for faults in faults_by_check.values():
        subjects.update((each.path, each.subject) for each in faults)
    effects = defaultdict[_PathAndSubject, list[str]](list)
    remaining = dict[CheckAndCluster, list[Fault]]()
    for checked, faults in faults_by_check.items():
        causes = list[Fault]()
        for each in faults:
            cause = _cause_among(subjects, each)
            if cause is None:
                causes.append(each)
            else:
                effects[cause].append(f"{each.subject} ({each.path})")
        if causes or not faults:
            remaining[checked] = causes
    return {checked: _with_effects(causes, effects) for checked, causes in remaining.items()}


def _cause_among(subjects: Collection[_PathAndSubject], effect: Fault) -> _PathAndSubject | None:
    """Return the fault that causes this one: one on the host before one in the same cluster."""
    for path in (HOST, effect.path):
        cause = (path, effect.effect_of)
        if cause in subjects and cause != (effect.path, effect.subject):
            return cause
    return None


def _with_effects(
    causes: Iterable[Fault], effects: Mapping[_PathAndSubject, Sequence[str]]
) -> list[Fault]:
    """Append to each cause the subjects that fail because of it."""
    complete = list[Fault]()
    for each in causes:
        subjects = effects.get((each.path, each.subject))
        if subjects is None:
            complete.append(each)
            continue
        failing = listed(list(dict.fromkeys(subjects)), "and", _SHOWN_NAMES)
        cause = f"{each.cause}. What fails for that: {failing}"
        complete.append(replace(each, cause=cause))
    return complete


def findings(check: str, cluster: str, faults: Sequence[Fault]) -> Iterator[Finding]:
    """Yield the findings of one check in one cluster: one for each cause, with all its objects.

    Without faults that is one finding of level `ok`. Causes and fixes are on one line, a cause
    without backticks, because tenants choose some of the words.
    """
    if not faults:
        yield Finding(Level.OK, cluster, "check", check, "", check=check)
    for group in _by_cause(faults):
        first = group[0]
        names = list(dict.fromkeys(each.name for each in group))
        yield Finding(
            level=first.level,
            path=first.path,
            kind=first.kind,
            name=text(listed(names, "and", _SHOWN_NAMES)),
            cause=text(first.cause),
            fix=plain(with_names(first.fix, names), _FIX_CHARACTERS),
            check=first.check or check,
        )


def _by_cause(faults: Iterable[Fault]) -> Iterable[list[Fault]]:
    """Group faults that one finding can report."""
    groups = defaultdict[tuple[str, ...], list[Fault]](list)
    for each in faults:
        cause = (each.key,) if each.key else (each.cause, each.fix)
        groups[each.check, each.level, each.kind, *cause].append(each)
    return groups.values()


def with_names(fix: str, names: Sequence[str]) -> str:
    """Fill the names of objects into the commands of a fix, which stand between backticks.

    A command with `{names}` takes all objects of a namespace, and is repeated for each namespace.
    Other commands take the first object only. At most 20 objects are named.
    """
    names_by_namespace = defaultdict[str, list[str]](list)
    for name in names[:_NAMES_IN_COMMAND]:
        namespace, _, name_inside = name.rpartition("/")
        names_by_namespace[namespace].append(name_inside)
    pieces = fix.split("`")
    for index in range(1, len(pieces), 2):  # each second piece stands between backticks
        pieces[index] = "`, `".join(_commands(pieces[index], names_by_namespace))
    return "`".join(pieces)


def _commands(template: str, names_by_namespace: Mapping[str, Sequence[str]]) -> list[str]:
    """Fill a command for each namespace, or for the first one if it does not take all names."""
    commands = list[str]()
    for namespace, names in names_by_namespace.items():
        command = template.replace("{namespace}", namespace)
        command = command.replace("{names}", " ".join(names))
        commands.append(command.replace("{name}", names[0]))
    return commands if "{names}" in template else commands[:1]


def text(words: str) -> str:
    """Return text on one line and without backticks, so that no tenant writes a command into it."""
    return plain(words).replace("`", "'")


def _placeholders(cluster: Cluster, **values: object) -> _Placeholders:
    """Return the values of placeholders: commands and keys of the cluster, then `values`."""
    placeholders = _Placeholders(
        kubectl=cluster.kubectl,
        host=cluster.host_kubectl,
        helm=cluster.helm,
        update=cluster.update,
        apply=cluster.apply,
        key=cluster.desired.key,
        queues=cluster.desired.queues_key,
    )
    placeholders.update(values)
    return placeholders


@cache
def _causes() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = yaml.load(_file("causes.yaml"), yaml.CSafeLoader)
    return table


@cache
def _tenant_causes() -> frozenset[str]:
    return frozenset(yaml.load(_file("tenants.yaml"), yaml.CSafeLoader))


def _file(name: str) -> bytes:
    return (files(__package__) / name).read_bytes()
