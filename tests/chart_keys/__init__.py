"""The keys that each version's chart reads: what its defaults have, and what its templates read
besides, `from` a version on and `until` one that has them no more. Below an "open" key anything
goes: labels, resources, lists. Helm ignores any other key of KAI's, silently (K5).
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kai_fleet.releases import KAI, VCLUSTER, taken_for, version_key

Chart = Literal["kai", "vcluster"]


def covers(span: Mapping[str, Any], version: str) -> bool:
    """Whether an entry of a list holds for a version: `from` one on, `until` another if any."""
    at = version_key(version)
    return version_key(span["from"]) <= at and (
        "until" not in span or at < version_key(span["until"])
    )


def unknown_keys(chart: Chart, version: str, values: Mapping[str, Any]) -> list[str]:
    """The keys of `values` that the chart of that version does not read, in their order.

    A version that is not in the table is taken for the newest one of its line, or of all, with the
    keys that the list has from a newer version on.
    """
    table = KAI if chart == "kai" else VCLUSTER
    newer = taken_for(table, version) is not None
    known = keys_of(chart, version if newer or version in table else list(table)[-1])
    above = {
        ".".join(parts[:n])
        for key in known
        for parts in [key.split(".")]
        for n in range(len(parts))
    }
    open_ = frozenset(_list(chart)["open"])
    problems = []
    for key in _leaves(values, above, known | open_):
        parts = key.split(".")
        prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if key not in known | above and not prefixes & open_ & known:
            problems.append(key)
    return problems


def _leaves(
    values: Mapping[str, Any], above: set[str], stop: frozenset[str], path: str = ""
) -> Iterator[str]:
    """The dotted keys of `values`: down to what the chart takes as one value, or does not know."""
    for name, value in values.items():
        key = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value and key in above and key not in stop:
            yield from _leaves(value, above, stop, key)
        else:
            yield key


@cache
def keys_of(chart: Chart, version: str) -> frozenset[str]:
    """The keys that the chart of one version reads."""
    groups = (group["keys"] for group in _list(chart)["keys"] if covers(group, version))
    return frozenset(key for keys in groups for key in keys)


@cache
def _list(chart: Chart) -> Any:
    file = Path(__file__).with_name(f"{chart}.json")
    return json.loads(file.read_text(encoding="utf-8"))
