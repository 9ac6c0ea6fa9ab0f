"""Chart values as mappings: nested, and merged as Helm merges them."""

from collections.abc import Mapping
from typing import Any


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
