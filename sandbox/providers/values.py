"""Property values: plain Python for what is done with them, the SDK's own for what is secret.

An unknown is the SDK's string `UNKNOWN`: its property values leave it as the engine sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider.values import plain

__all__ = ["UNKNOWN", "PropertyValue", "decode", "encode", "has_unknown", "marked", "plain"]

Properties = dict[str, PropertyValue]
# From a message of the engine, and for one.
decode, encode = PropertyValue.unmarshal_map, PropertyValue.marshal_map


def marked(value: Any, like: PropertyValue | None = None) -> PropertyValue:
    """A plain value, secret where `like` is.

    Where a list in `like` has a secret, the whole list is one: an item may have moved.
    """
    if isinstance(value, PropertyValue):
        return value
    secret = like is not None and like.is_secret
    if isinstance(value, dict):
        return PropertyValue(marked_map(value, _map(like)), secret)
    if isinstance(value, list):
        secret = secret or (like is not None and like.contains_secret())
        return PropertyValue([marked(item) for item in value], secret)
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    return PropertyValue(value, secret)


def marked_map(value: dict[str, Any], like: Mapping[str, PropertyValue]) -> Properties:
    """The same for each value of a map."""
    return {key: marked(item, like.get(key)) for key, item in value.items()}


def _map(value: PropertyValue | None) -> Mapping[str, PropertyValue]:
    return value.value if value is not None and isinstance(value.value, Mapping) else {}


def has_unknown(value: Any) -> bool:
    """Whether a plain value holds an unknown at any depth."""
    if isinstance(value, dict):
        return any(map(has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return bool(value == UNKNOWN)
