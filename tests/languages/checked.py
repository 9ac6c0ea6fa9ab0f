"""A resource of the package, as a program in YAML writes it, checked against the schema."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.package import served_schema
from kai_fleet.provider import PACKAGE

_REFERENCE = re.compile(r"\$\{[^}]+\}")


def mistakes(kind: str, properties: Mapping[str, Any]) -> list[str]:
    """What is wrong with the properties of a `kai-fleet:KIND`, a sentence each."""
    schema = served_schema()
    component = schema["resources"].get(f"{PACKAGE}:index:{kind}")
    if component is None:
        return [f"there is no component {kind}"]
    found = {"properties": component["inputProperties"], "required": component["requiredInputs"]}
    return list(_object(schema, "", found, properties))


def _object(schema: Any, path: str, of: Any, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path} is no mapping"
        return
    for key in of["required"]:
        if key not in value:
            yield f"{_at(path, key)} is missing"
    for key, item in value.items():
        if key not in of["properties"]:
            yield f"{_at(path, key)} is no property"
        else:
            yield from _value(schema, _at(path, key), of["properties"][key], item)


def _value(schema: Any, path: str, of: Any, value: Any) -> Iterator[str]:
    if isinstance(value, str) and _REFERENCE.fullmatch(value):
        return
    if "$ref" in of:
        named = schema["types"].get(of["$ref"].removeprefix("#/types/"))
        if named is None:
            return
        if "enum" in named:
            if value not in [it["value"] for it in named["enum"]]:
                yield f"{path} is {value!r}"
            return
        yield from _object(schema, path, named, value)
    elif of["type"] == "array":
        for number, item in enumerate(value):
            yield from _value(schema, f"{path}[{number}]", of["items"], item)
    elif "additionalProperties" in of:
        for key, item in value.items():
            yield from _value(schema, _at(path, key), of["additionalProperties"], item)
    elif not isinstance(value, _PYTHON[of["type"]]) or isinstance(value, bool) != (
        of["type"] == "boolean"
    ):
        yield f"{path} is {value!r}, and no {of['type']}"


_PYTHON: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
