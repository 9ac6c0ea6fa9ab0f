"""Findings from the faults of checks: one for each cause, with the objects that it affects.

The texts are rows of tables: `causes.yaml` by name, `messages.yaml` by what Kubernetes, vCluster
and KAI write into events, conditions and containers, and `scheduling.yaml` of the components by
what schedulers say.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from kai_fleet.cluster import scheduling
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.scheduling import NOTHING, Around
from kai_fleet.finding import Finding, Level
from kai_fleet.wording import listed, plain
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.model.cluster import HOST

NVIDIA_CLASS: Final = "nvidia"  # the RuntimeClass of messages that name none
_SHOWN: Final = 10  # names in a finding
_IN_COMMAND: Final = 20  # the others show in the next run
_LONGEST_FIX: Final = 20_000  # characters
_READ: Final = 4000  # characters of a message: tenants write some, and patterns take long for more
_QUOTED: Final = 240  # characters of a message in a cause


@dataclass(frozen=True)
class Fault(Finding):
    """A finding about one object. Names in a namespace are `NAMESPACE/NAME`.

    `key` is that of the cause, where its text differs from object to object. `effect_of` is the
    subject that causes it, where that may be a fault itself, here or on the host.
    """

    key: str = ""
    effect_of: str = ""


class Why(NamedTuple):
    """Why an object is not ready, and the fix; "" where none is known."""

    cause: str
    fix: str
    effect_of: str = ""


class _Places(dict[str, Any]):
    """Values of a text; those that are filled in later stay as they are."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


def fault(row: str, cluster: Cluster, name: str, **values: Any) -> Fault:
    """Fill a row of `causes.yaml` for one object; `values` may override columns of it, too."""
    defaults = {"kind": "pod", "check": "", "level": "mandatory", "key": "", "effect_of": ""}
    columns = {**defaults, **_table("causes")[row]}
    places = _places(cluster, **values)
    texts = {column: row_text.format_map(places) for column, row_text in columns.items()}
    own = ("kind", "check", "level", "effect_of")
    texts |= {column: values[column] for column in own if column in values}
    return Fault(_level(texts.pop("level"), cluster), cluster.name, name=name, **texts)


def _level(name: str, cluster: Cluster) -> Level:
    """What a tenant did is `info` in its vCluster; on the host nobody is a tenant."""
    level = Level(name)
    return Level.MANDATORY if level is Level.INFO and cluster.name == HOST else level


def explain(
    cluster: Cluster,
    kind: str,
    name: str,
    texts: Iterable[str],
    check: str = "",
    about: Around = NOTHING,
) -> Fault | None:
    """The meaning of the first known message, for one object; the row's name is the check unless
    one is given. `about` are the objects around a pod without a node.
    """
    for message in texts:
        known = _of_others(cluster, message) or _of_schedulers(cluster, message, about)
        if known is not None:
            is_tenants = known.unread or known.row in _table("tenants")
            level = "info" if is_tenants else "mandatory"
            texts = (kind, name, known.cause, known.fix, check or known.row)
            own_level = _level(level, cluster)
            return Fault(own_level, cluster.name, *texts, key=known.key, effect_of=known.effect_of)
    return None


class _Known(NamedTuple):
    """What a message means: the name of its row, and the columns of a fault; `unread` is why it is
    not known to be the platform's, "" where that is known.
    """

    row: str
    cause: str
    fix: str
    key: str
    effect_of: str = ""
    unread: str = ""


def _of_others(cluster: Cluster, message: str) -> _Known | None:
    """What a message means by a row of `messages.yaml`."""
    for row in _table("messages"):
        match = re.search(row["pattern"], message[:_READ], flags=re.DOTALL)
        if match is not None:
            places = _places(cluster, what="", text=" ".join(message.split())[:_QUOTED])
            places |= {key: value.strip() for key, value in match.groupdict("").items()}
            cause = " ".join(row["cause"].format_map(places).split())
            key = row["name"] if "{text}" in row["cause"] else ""
            effect_of = _cause_of(row["name"], str(places["what"]))
            return _Known(row["name"], cause, row["fix"].format_map(places), key, effect_of)
    return None


def _of_schedulers(cluster: Cluster, message: str, about: Around) -> _Known | None:
    """The same of what a scheduler says; the nodes that it counts differ from pod to pod."""
    known = scheduling.meaning(message, about)
    if known is None:
        return None
    row, values = known
    cause, fix = (part.format_map(_places(cluster, **values)) for part in (row.cause, row.fix))
    key = row.cause.format_map({**values, "text": ""})
    if not about.unread or not row.is_of_nodes:
        return _Known(row.name, cause, fix, key)
    cause = f"{cause.rstrip('.')}. What its nodes and volumes say is not known: {about.unread}"
    fix = "" if row.is_by_objects else fix
    return _Known(row.name, cause, fix, key + about.unread, unread=about.unread)


def _cause_of(row: str, what: str) -> str:
    """The subject of the fault that a known message is an effect of."""
    return f"RuntimeClass {what or NVIDIA_CLASS}" if row == "runtime-class" else ""


def reason(cluster: Cluster, *items: KubeObject) -> Why:
    """Why objects are not ready, by the first known message about them."""
    if unread := cluster.unread("events", "bound"):
        texts = [text for item in items for text in item.messages if text]
        unknown = f"why is not known: {unread}"
    else:
        texts = cluster.messages_of(*items)
        unknown = "nothing gives a reason"
    waits = next((item for item in items if item.unscheduled), None)
    about = NOTHING if waits is None else cluster.around(waits)
    known = explain(cluster, "", "", texts, about=about)
    if known is not None:
        return Why(known.cause, known.fix, known.effect_of)
    return Why(next(iter(texts), unknown)[:_QUOTED], "")


def going(
    cluster: Cluster, item: KubeObject, kind: str, kinds: str, *, declared: bool = True
) -> Fault:
    """An object that is being deleted, with what keeps it; `kinds` is the plural of its kind."""
    row = "going-kept" if item.finalizers else "going"
    if not declared:
        row += "-undeclared"
    name = item.namespaced_name if item.namespace else item.name
    at = f"-n {item.namespace} " if item.namespace else ""
    values = {"kind": kind, "kinds": kinds, "at": at, "finalizers": ", ".join(item.finalizers)}
    return fault(row, cluster, name, **values)


Found: TypeAlias = Mapping[tuple[str, str], Sequence[Fault]]  # by check and cluster


def merged(found: Found) -> Found:
    """The faults without those that are effects of others, which name what fails for them."""
    subjects = {(each.path, each.subject) for faults in found.values() for each in faults}
    effects = defaultdict[tuple[str, str], list[str]](list)
    left = dict[tuple[str, str], list[Fault]]()
    for at, faults in found.items():
        kept = list[Fault]()
        for each in faults:
            cause = _cause_among(subjects, each)
            if cause is None:
                kept.append(each)
            else:
                effects[cause].append(f"{each.subject} ({each.path})")
        if kept or not faults:
            left[at] = kept
    return {
        at: [_with_effects(each, effects[each.path, each.subject]) for each in faults]
        for at, faults in left.items()
    }


def _cause_among(subjects: Collection[tuple[str, str]], effect: Fault) -> tuple[str, str] | None:
    """The place and subject of the fault that causes this one: on the host, else beside it."""
    for path in (HOST, effect.path):
        cause = (path, effect.effect_of)
        if cause in subjects and cause != (effect.path, effect.subject):
            return cause
    return None


def _with_effects(cause: Fault, effects: Sequence[str]) -> Fault:
    if not effects:
        return cause
    waiting = listed(list(dict.fromkeys(effects)), "and", _SHOWN)
    return replace(cause, cause=f"{cause.cause}. What fails for that: {waiting}")


def findings(check: str, cluster: str, faults: Sequence[Fault]) -> Iterator[Finding]:
    """The faults of one check in one cluster, each cause once; without any that it is well."""
    if not faults:
        yield Finding(Level.OK, cluster, "check", check, "", check=check)
    groups: dict[tuple[str, ...], list[Fault]] = {}
    for each in faults:
        own = (each.key,) if each.key else (each.cause, each.fix)
        groups.setdefault((each.check, each.level, each.kind, *own), []).append(each)
    for group in groups.values():
        first, names = group[0], list(dict.fromkeys(each.name for each in group))
        name, cause = text(listed(names, "and", _SHOWN)), text(first.cause)
        fix = plain(filled(first.fix, names), _LONGEST_FIX)
        yield Finding(first.level, first.path, first.kind, name, cause, fix, first.check or check)


def filled(fix: str, names: Sequence[str]) -> str:
    """A fix with the names in its commands: a command for each namespace."""
    spaces: dict[str, list[str]] = {}
    for name in names[:_IN_COMMAND]:
        space, _, own = name.rpartition("/")
        spaces.setdefault(space, []).append(own)
    parts = fix.split("`")
    for at in range(1, len(parts), 2):
        parts[at] = "`, `".join(
            parts[at]
            .replace("{namespace}", space)
            .replace("{names}", " ".join(own))
            .replace("{name}", own[0])
            for space, own in list(spaces.items())[: None if "{names}" in parts[at] else 1]
        )
    return "`".join(parts)


def text(words: str) -> str:
    """Text on one line, without commands: tenants choose some of the words."""
    return plain(words).replace("`", "'")


def _places(cluster: Cluster, **values: Any) -> _Places:
    desired, own = cluster.desired, ("kubectl", "host", "helm", "update", "apply")
    keys = {"key": desired.key, "queues": desired.queues_key}
    return _Places({name: getattr(cluster, name) for name in own} | keys | values)


@cache
def _table(name: str) -> Any:
    return yaml.load((files(__package__) / f"{name}.yaml").read_bytes(), yaml.CSafeLoader)
