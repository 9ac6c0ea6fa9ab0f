"""Chart values as mappings: nested, merged as Helm merges them, and from the tables in YAML."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from kai_fleet.releases import table
from kai_fleet.values import value_at

_EMPTY: Final[tuple[Any, ...]] = (None, {}, [], "")


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """`("a.b", 1)` as `{"a": {"b": 1}}`."""
    for key in reversed(dotted.split(".")):
        value = {key: value}
    return dict(value)


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers over earlier ones, mapping by mapping; lists and scalars are replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = merged(below, value)
            result[key] = value
    return result


def values_of(chart: str, layers: Iterable[str], args: Mapping[str, Any]) -> dict[str, Any]:
    """Layers of chart-values.yaml, filled with these arguments; empty values are dropped."""

    def filled(value: Any) -> Any:
        if not (isinstance(value, str) and value.startswith("$")):
            return value
        path, _, default = value[1:].partition("|")
        given = value_at(args, path)
        return yaml.safe_load(default) if given is None and default else given

    tables = table("chart-values")[chart]
    rows = [row for layer in layers for row in tables[layer].items()]
    given = {key: value for key, written in rows if (value := filled(written)) not in _EMPTY}
    return merged(*(nested(key, value) for key, value in given.items()))
