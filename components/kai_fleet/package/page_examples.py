"""The examples of the pages: each is in page_examples.yaml once, and shown in every language."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kai_fleet.package import Json, referred, served_schema
from kai_fleet.provider import PACKAGE

_SCHEMA: Final[Json] = served_schema()
_FILE: Final = Path(__file__).with_suffix(".yaml")
# By component: the name of one, and its inputs.
EXAMPLES: Final[Mapping[str, tuple[str, Json]]] = {
    resource["type"].rpartition(":")[2]: (name, resource["properties"])
    for document in yaml.safe_load_all(_FILE.read_text(encoding="utf-8"))
    for name, resource in document.items()
}
_SECRET: Final = "${kubeconfig}"
_GO_TYPES: Final = {"string": "String", "integer": "Int", "number": "Float64", "boolean": "Bool"}


def of(component: str) -> dict[str, str]:
    """The example of a component, by language."""
    name, inputs = EXAMPLES[component]
    resource = {name: {"type": f"{PACKAGE}:{component}", "properties": inputs}}
    return {
        "TypeScript": _typescript(component, name, inputs),
        "Python": _python(component, name, inputs),
        "Go": _go(component, name, inputs),
        "YAML": yaml.safe_dump(resource, sort_keys=False),
    }


def _typescript(component: str, name: str, inputs: Json) -> str:
    body = _literal(inputs, 0, lambda key: key if re.fullmatch(r"\w+", key) else json.dumps(key))
    body = body.replace(f'"{_SECRET}"', 'config.requireSecret("kubeconfig")')
    return f'new fleet.{component}("{name}", {body});\n'


def _python(component: str, name: str, inputs: Json) -> str:
    arguments = [
        f"    {key}={_literal(value, 1, json.dumps)},"
        for key, value in in_python(component, inputs).items()
    ]
    body = "\n".join(arguments).replace(f'"{_SECRET}"', 'config.require_secret("kubeconfig")')
    return f'fleet.{component}(\n    "{name}",\n{body}\n)\n'


def in_python(component: str, inputs: Json) -> dict[str, Any]:
    """The inputs with the names of Python's SDK; the keys of maps are names, and stay."""

    def named(of: Json, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if "additionalProperties" in of:
            return {key: named(of["additionalProperties"], item) for key, item in value.items()}
        properties = _schema_type(of)["properties"]
        return {_snake(key): named(properties[key], item) for key, item in value.items()}

    properties = _inputs_of(component)
    return {_snake(key): named(properties[key], value) for key, value in inputs.items()}


def _go(component: str, name: str, inputs: Json) -> str:
    properties = _inputs_of(component)
    fields = [
        f"\t{_go_name(key)}: {_go_value(properties[key], value, 1)},"
        for key, value in inputs.items()
    ]
    head = f'kaifleet.New{component}(ctx, "{name}", &kaifleet.{component}Args{{'
    return "\n".join([head, *fields, "})"]) + "\n"


def _go_value(of: Json, value: Any, depth: int) -> str:
    def block(head: str, key: Callable[[str], str], item_type: Callable[[str], Json]) -> str:
        items = [
            "\t" * (depth + 1) + f"{key(name)}: {_go_value(item_type(name), item, depth + 1)},"
            for name, item in value.items()
        ]
        return "\n".join([f"{head}{{", *items, "\t" * depth + "}"])

    if "$ref" in of:
        known, name = _schema_type(of), referred(of)
        if "enum" in known:
            chosen = next(it["name"] for it in known["enum"] if it["value"] == value)
            return f"kaifleet.{name}{chosen}"
        return block(f"kaifleet.{name}Args", _go_name, lambda key: known["properties"][key])
    if of["type"] == "array":
        return "pulumi.StringArray{" + ", ".join(f'pulumi.String("{it}")' for it in value) + "}"
    if "additionalProperties" in of:
        inner = of["additionalProperties"]
        kind = f"kaifleet.{referred(inner)}" if "$ref" in inner else "pulumi.String"
        return block(f"{kind}Map", json.dumps, lambda key: inner)
    if value == _SECRET:
        return 'config.RequireSecret(ctx, "kubeconfig")'
    return f"pulumi.{_GO_TYPES[of['type']]}({json.dumps(value)})"


def _literal(value: Any, depth: int, key: Callable[[str], str]) -> str:
    """A value as TypeScript and Python write it: in one line where it is short."""
    if not isinstance(value, Mapping):
        return json.dumps(value)
    items = [f"{key(name)}: {_literal(item, depth + 1, key)}" for name, item in value.items()]
    inside = ", ".join(items)
    short = f"{{{inside}}}" if items[0].startswith('"') else f"{{ {inside} }}"
    if len(short) + 4 * depth <= 76 and "\n" not in short:
        return short
    pad = "    " * depth
    return "{\n" + "".join(f"{pad}    {item},\n" for item in items) + f"{pad}}}"


def _inputs_of(component: str) -> Any:
    return _SCHEMA["resources"][f"{PACKAGE}:index:{component}"]["inputProperties"]


def _schema_type(of: Json) -> Any:
    return _SCHEMA["types"][of["$ref"].removeprefix("#/types/")]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _go_name(name: str) -> str:
    return name[:1].upper() + name[1:]
