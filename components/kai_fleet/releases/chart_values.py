"""Values of charts as mappings: nested, merged as Helm merges them, and from chart-values.yaml."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from kai_fleet.releases import table
from kai_fleet.values import value_at

_EMPTY: tuple[object, ...] = (None, {}, [], "")


def nested(dotted: str, value: object) -> dict[str, object]:
    """A value at a dotted key as mappings: `("a.b", 1)` as `{"a": {"b": 1}}`."""
    *parents, last = dotted.split(".")
    result = {last: value}
    for key in reversed(parents):
        result = {key: result}
    return result


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Layers merged, later ones over earlier ones.

    Mappings are merged key by key; lists and scalars are replaced, also by None. The layers stay as
    they are.
    """
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            earlier = result.get(key)
            if isinstance(earlier, Mapping) and isinstance(value, Mapping):
                result[key] = merged(earlier, value)
            else:
                result[key] = value
    return result


def values_of(
    chart: str,
    layers: Iterable[str],
    args: Mapping[str, object],
) -> dict[str, Any]:
    """Layers of a chart in chart-values.yaml, with these arguments filled in.

    Keys with an empty value (None, "", an empty mapping or list) are left out. If several layers
    have a key, the last one that is not empty counts. Raises KeyError for a chart or layer that is
    not in the table.
    """
    tables = table("chart-values")[chart]
    by_key = {}
    for layer in layers:
        for key, written in tables[layer].items():
            value = _filled(written, args)
            if value not in _EMPTY:
                by_key[key] = value
    nested_values = [nested(key, value) for key, value in by_key.items()]
    return merged(*nested_values)


def _filled(written: object, args: Mapping[str, object]) -> Any:
    """A value of the table; for `$argument` and `$argument|default` the argument in its place.

    An argument is a dotted key. One that is absent or None gives the default, in YAML, else None.
    """
    if not isinstance(written, str) or not written.startswith("$"):
        return written
    argument, _, default = written.removeprefix("$").partition("|")
    value = value_at(args, argument)
    if value is None and default:
        return yaml.safe_load(default)
    return value
