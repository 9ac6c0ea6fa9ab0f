"""From what checks find to findings: one for each cause, which lists what it harms.

The texts are rows of two tables: `causes.yaml` by name, and `messages.yaml` by what Kubernetes,
vCluster and KAI write into events, conditions and containers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

from kai_fleet.finding import Finding, Level
from kai_fleet.kube.text import plain
from kai_fleet.wording import listed, plural
from kai_fleet_cli.doctor.desired import Required
from kai_fleet_cli.doctor.snapshot import Cluster

_SHOWN: Final = 10  # names in a finding
_IN_COMMAND: Final = 20  # the others show in the next run
_LONGEST_FIX: Final = 20_000  # characters
_READ: Final = 4000  # characters of a message: tenants write some, and patterns take long for more
_QUOTED: Final = 240  # characters of a message in a cause


@dataclass(frozen=True)
class Fault:
    """Something wrong with one thing. Names in a namespace are `NAMESPACE/NAME`."""

    kind: str
    name: str
    cause: str
    fix: str
    level: Level = Level.MANDATORY
    key: str = ""  # of the cause, where its text differs from thing to thing
    check: str = ""
    row: str = ""  # of the table of messages


class _Places(dict[str, Any]):
    """Values of a text; those that are filled in later stay as they are."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


def fault(row: str, cluster: Cluster, name: str, **values: Any) -> Fault:
    """One row of `causes.yaml` for one thing; `values` may override columns of the row too."""
    columns = {"kind": "pod", "check": "", "level": "mandatory", "key": "", **_table("causes")[row]}
    places = _places(cluster, **values)
    texts = {column: row_text.format_map(places) for column, row_text in columns.items()}
    texts |= {column: values[column] for column in ("kind", "check", "level") if column in values}
    return Fault(name=name, level=Level(texts.pop("level")), **texts)


def absent(cluster: Cluster, required: Iterable[Required], check: str) -> Iterator[Fault]:
    """The objects that the stack requires for a check and that are not there."""
    for row in required:
        kinds = plural(2, row.kind).lower()
        found = cluster.named(kinds, row.name, row.namespace)
        if row.check == check and found is None and kinds not in cluster.unreadable:
            name = f"{row.namespace}/{row.name}" if row.namespace else row.name
            yield fault("absent", cluster, name, kind=row.kind, level=row.level, harm=row.harm)


def unreadable(cluster: Cluster) -> Iterator[Fault]:
    """Kinds that this user may not read."""
    for reason in list(cluster.unreadable.values())[:1]:
        yield fault("read-access", cluster, ", ".join(sorted(cluster.unreadable)), reason=reason)


def explain(cluster: Cluster, kind: str, name: str, texts: Iterable[str]) -> Fault | None:
    """What the first known of the messages means for a thing."""
    for message in texts:
        for row in _table("messages"):
            match = re.search(row["pattern"], message[:_READ], flags=re.DOTALL)
            if match is not None:
                groups = {key: value.strip() for key, value in match.groupdict("").items()}
                places = _places(cluster, what="") | groups | {"text": quoted(message)}
                key = row["name"] if "{text}" in row["cause"] else ""
                cause = " ".join(row["cause"].format_map(places).split())
                fix = row["fix"].format_map(places)
                return Fault(kind, name, cause, fix, key=key, row=row["name"])
    return None


def quoted(message: str) -> str:
    """The beginning of a message, on one line."""
    return " ".join(message.split())[:_QUOTED]


def findings(check: str, cluster: str, faults: Iterable[Fault]) -> Iterator[Finding]:
    """The faults of one check in one cluster, each cause once."""
    groups: dict[tuple[str, ...], list[Fault]] = {}
    for one in faults:
        own = (one.key,) if one.key else (one.cause, one.fix)
        groups.setdefault((one.check, one.level, one.kind, *own), []).append(one)
    for group in groups.values():
        first, names = group[0], list(dict.fromkeys(one.name for one in group))
        name, cause = text(listed(names, "and", _SHOWN)), text(first.cause)
        fix, found_by = plain(filled(first.fix, names), _LONGEST_FIX), first.check or check
        yield Finding(first.level, cluster, first.kind, name, cause, fix, found_by)


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


def _places(cluster: Cluster, **values: Any) -> _Places:
    desired, own = cluster.desired, ("kubectl", "helm", "update", "apply")
    keys = {"key": desired.key, "queues": desired.queues_key}
    return _Places({name: getattr(cluster, name) for name in own} | keys | values)


def text(words: str) -> str:
    """One line without commands: tenants choose some of the words."""
    return plain(words).replace("`", "'")


@cache
def _table(name: str) -> Any:
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text(encoding="utf-8"))
