"""Which values each version's chart reads. Helm ignores any other key of KAI's, silently (K5).

The lists beside this file hold the keys of each supported version: what its defaults have, and
what its templates read besides. Below an "open" key anything goes: labels, resources, lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from kai_fleet.releases.kai_table import KAI
from kai_fleet.releases.lookup import taken_for
from kai_fleet.releases.vcluster_table import VCLUSTER

Chart = Literal["kai", "vcluster"]
_FILES: Final = Path(__file__).parent
_TABLES: Final[dict[Chart, Mapping[str, Any]]] = {"kai": KAI, "vcluster": VCLUSTER}


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
    by_version: Mapping[str, frozenset[str]]
    above: Mapping[str, frozenset[str]]  # the mappings that the keys lie in
    open: frozenset[str]


def unknown_keys(chart: Chart, version: str, values: Mapping[str, Any]) -> list[UnknownKey]:
    """The keys of `values` that the chart of that version does not read, in their order.

    A version that is not in the table is taken for the newest one of its line, or of all.
    """
    table = _keys(chart)
    newest = taken_for(_TABLES[chart], version) or list(_TABLES[chart])[-1]
    at = version if version in table.by_version else newest
    known, above = table.by_version[at], table.above[at]
    found = []
    for key in _leaves(values, above, known | table.open):
        parts = key.split(".")
        prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if key in known or key in above or prefixes & table.open & known:
            continue
        readers = tuple(
            v for v in table.by_version if key in table.by_version[v] or key in table.above[v]
        )
        found.append(UnknownKey(key, _likeliest(key, known | above), readers))
    return found


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
    """The key beside it that is spelt most like it."""
    parent, _, name = key.rpartition(".")
    beside = {k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == parent}
    near = get_close_matches(name, sorted(beside), n=1, cutoff=0.6)
    return ".".join(filter(None, (parent, near[0]))) if near else None


@cache
def _keys(chart: Chart) -> _Keys:
    read = json.loads((_FILES / f"{chart}_value_keys.json").read_text(encoding="utf-8"))
    by_version: dict[str, set[str]] = {version: set() for version in _TABLES[chart]}
    for group in read["keys"]:
        for version in group["versions"]:
            by_version[version].update(group["keys"])
    above = {
        version: frozenset(
            ".".join(key.split(".")[:n]) for key in keys for n in range(1, key.count(".") + 1)
        )
        for version, keys in by_version.items()
    }
    return _Keys(
        {version: frozenset(keys) for version, keys in by_version.items()},
        above,
        frozenset(read["open"]),
    )
