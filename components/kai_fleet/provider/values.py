"""Property values of the engine's, as plain Python and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue

Properties = dict[str, Any]


def plain(value: Any) -> Any:
    """A value, or a mapping of values, without the marks of secrets at any depth; whole numbers are
    int. A value that is not known yet is the text by which Pulumi's protocol says so.
    """
    if isinstance(value, PropertyValue):
        return plain(value.value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def properties(values: Mapping[str, Any]) -> dict[str, PropertyValue]:
    """Plain values for the engine. What is a PropertyValue already stays."""
    return {key: _property(value) for key, value in values.items()}


def secret(value: Any) -> PropertyValue:
    """A plain value that the engine encrypts in the state and hides in its output."""
    return _property(value).with_secret(True)


def _property(value: Any) -> PropertyValue:
    if isinstance(value, PropertyValue):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return PropertyValue(float(value))
    if isinstance(value, Mapping):
        return PropertyValue(properties(value))
    if isinstance(value, list):
        return PropertyValue([_property(item) for item in value])
    return PropertyValue(value)
