"""A report for machines: the names of the model's fields are the keys, in camelCase."""

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

from pydantic.alias_generators import to_camel

from kai_fleet_cli.report.model import StackReport

# Besides the fields: what is counted from them.
_COUNTED: Final = ("idle", "trend", "total")


def record(report: StackReport) -> dict[str, Any]:
    """The JSON: its keys do not change between releases. None is "not known"."""
    whole: dict[str, Any] = _plain(report)
    return whole


def _plain(value: Any) -> Any:
    if hasattr(value, "record"):
        return value.record()
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        counted = [name for name in _COUNTED if name not in names and hasattr(value, name)]
        return {to_camel(name): _plain(getattr(value, name)) for name in (*names, *counted)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Collection):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
