"""The keys that each version's chart reads: what its defaults have, and what its templates read
besides, `from` a version on and `until` one that has them no more. Below an "open" key anything
goes: labels, resources, lists. Helm ignores any other key of KAI's, silently (K5).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from kai_fleet.releases import KAI, VCLUSTER, taken_for, version_key
from kai_fleet.wording import listed, spelt_like

Chart = Literal["kai", "vcluster"]
# How far from where a key stands another of its name may be, and how many of them are named.
_FARTHEST: Final = 3
_MOST_PLACES: Final = 3
_TABLES: Final[dict[Chart, Mapping[str, Any]]] = {"kai": KAI, "vcluster": VCLUSTER}


def covers(span: Mapping[str, Any], version: str) -> bool:
    """Whether an entry of a list holds for a version: `from` one on, `until` another if any."""
    at = version_key(version)
    return version_key(span["from"]) <= at and (
        "until" not in span or at < version_key(span["until"])
    )


@dataclass(frozen=True)
class UnknownKey:
    """A value that a version's chart does not read; `instead` is the likeliest one that it does.

    `versions` are those whose chart does read it: the key may be right and the version not.
    """

    key: str
    instead: str | None
    versions: tuple[str, ...]


@dataclass(frozen=True)
class _Keys:
    known: frozenset[str]
    above: frozenset[str]  # the mappings that the keys lie in


def unknown_keys(chart: Chart, version: str, values: Mapping[str, Any]) -> list[UnknownKey]:
    """The keys of `values` that the chart of that version does not read, in their order.

    A version that is not in the table is taken for the newest one of its line, or of all, with the
    keys that the list has from a newer version on.
    """
    table, open_ = _TABLES[chart], frozenset(_list(chart)["open"])
    newer = taken_for(table, version) is not None
    keys = _of(chart, version if newer else _closest_known(table, version))
    every, problems = keys.known | keys.above, []
    for key in _leaves(values, keys.above, keys.known | open_):
        parts = key.split(".")
        prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if key in every or prefixes & open_ & keys.known:
            continue
        of = {v: _of(chart, v) for v in table}
        readers = tuple(v for v, it in of.items() if key in it.known or key in it.above)
        problems.append(UnknownKey(key, _likeliest(key, every), readers))
    return problems


def _leaves(
    values: Mapping[str, Any], above: frozenset[str], stop: frozenset[str], path: str = ""
) -> Iterator[str]:
    """The dotted keys of `values`: down to what the chart takes as one value, or does not know."""
    for name, value in values.items():
        key = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value and key in above and key not in stop:
            yield from _leaves(value, above, stop, key)
        else:
            yield key


def _likeliest(key: str, known: frozenset[str]) -> str | None:
    """The key beside it that is spelt most like it, or the nearest ones of its very name."""
    parent, _, name = key.rpartition(".")
    beside = {k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == parent}
    if near := spelt_like(name, sorted(beside)):
        return ".".join(filter(None, (parent, near)))
    steps = {k: _steps(k, key) for k in known if k.rpartition(".")[2] == name}
    least = min(steps.values(), default=0)
    nearest = sorted(k for k, it in steps.items() if it == least <= _FARTHEST)
    return listed(nearest) if len(nearest) <= _MOST_PLACES else None


def _steps(one: str, other: str) -> int:
    """How far two keys are from each other, in steps up and down."""
    parts = one.split("."), other.split(".")
    same = next((n for n, (a, b) in enumerate(zip(*parts, strict=False)) if a != b), len(parts[0]))
    return len(parts[0]) + len(parts[1]) - 2 * same - 2


@cache
def _of(chart: Chart, version: str) -> _Keys:
    """The keys that the chart of one version reads."""
    groups = (group["keys"] for group in _list(chart)["keys"] if covers(group, version))
    known = frozenset(key for keys in groups for key in keys)
    above = (key.split(".")[:n] for key in known for n in range(1, key.count(".") + 1))
    return _Keys(known, frozenset(map(".".join, above)))


@cache
def _list(chart: Chart) -> Any:
    file = Path(__file__).with_name(f"{chart}.json")
    return json.loads(file.read_text(encoding="utf-8"))


def _closest_known(table: Mapping[str, Any], version: str) -> str:
    """The version itself, else the one that it is taken for, else the newest."""
    return version if version in table else taken_for(table, version) or list(table)[-1]
