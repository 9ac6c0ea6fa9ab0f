"""Values of charts as mappings: nested, merged as Helm merges them, and from chart-values.yaml."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from kai_fleet.releases import table
from kai_fleet.values import value_at

_EMPTY: Final[tuple[object, ...]] = (None, {}, [], "")


def nested(dotted: str, value: object) -> dict[str, Any]:
    """A value at a dotted key as mappings: `("a.b", 1)` as `{"a": {"b": 1}}`."""
    *parents, last = dotted.split(".")
    result: dict[str, Any] = {last: value}
    for key in reversed(parents):
        result = {key: result}
    return result


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Layers merged, later ones over earlier ones.

    Mappings are merged key by key; lists and scalars are replaced, also by None.
    """
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                value = merged(below, value)
            result[key] = value
    return result


def values_of(chart: str, layers: Iterable[str], args: Mapping[str, Any]) -> dict[str, Any]:
    """Layers of a chart in chart-values.yaml, with these arguments filled in.

    Keys with an empty value (None, "", an empty mapping or list) are left out. If several layers
    have a key, the last one that is not empty counts.
    """
    by_key = {}
    for layer in layers:
        for key, written in table("chart-values")[chart][layer].items():
            value = _filled(written, args)
            if value not in _EMPTY:
                by_key[key] = value
    return merged(*(nested(key, value) for key, value in by_key.items()))


def _filled(written: object, args: Mapping[str, Any]) -> Any:
    """A value of the table; for `$argument` and `$argument|default` the argument in its place."""
    if not isinstance(written, str) or not written.startswith("$"):
        return written
    argument, _, default = written.removeprefix("$").partition("|")
    value = value_at(args, argument)
    if value is None and default:
        return yaml.safe_load(default)
    return value
