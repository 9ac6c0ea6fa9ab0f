"""`python -m kai_fleet.package.pages FOLDER`: a page for each component, from the schema.

Its example is in page_examples.yaml once, and shown in every language.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kai_fleet.package import Json, in_words, referred, served_schema
from kai_fleet.provider import PACKAGE

_SCHEMA: Final[Json] = served_schema()
_EXAMPLES_FILE: Final = Path(__file__).with_name("page_examples.yaml")
# By component: the name of one, and its inputs.
EXAMPLES: Final[Mapping[str, tuple[str, Json]]] = {
    resource["type"].rpartition(":")[2]: (name, resource["properties"])
    for document in yaml.safe_load_all(_EXAMPLES_FILE.read_text(encoding="utf-8"))
    for name, resource in document.items()
}
_SECRET: Final = "${kubeconfig}"
_GO_TYPES: Final = {"string": "String", "integer": "Int", "number": "Float64", "boolean": "Bool"}
_INDEX: Final = """\
# The package `kai-fleet`

The components for every Pulumi program, written from the schema by `make reference`.

```console
pulumi package add REPOSITORY/components@v{version}
```

gets the plugin and writes an SDK for the project's language. Every input may be an output; what
decides which resources there are must be known at a preview, which says so where it is not.
`cluster` is how the probes reach a cluster; a Kubernetes provider in the resource's options is used
for everything that is declared on it. `protect`, `transforms`, `dependsOn` and `deletedWith` reach
what a component makes. `aliases` do from v3.217 of Pulumi's CLI on: earlier engines drop them, and
make a renamed component anew. What is left out has the default that its description says; the SDKs
write no defaults out where that would mean more than leaving them out.

| component | what it is |
|---|---|
"""


def pages() -> dict[str, str]:
    """Their text by file name."""
    texts = {}
    index = _INDEX.format(version=_SCHEMA["version"])
    for token, component in _SCHEMA["resources"].items():
        name = token.rpartition(":")[2]
        index += f"| [{name}]({name}.md) | {component['description']} |\n"
        texts[f"{name}.md"] = "\n".join(_page(name, component)) + "\n"
    return {"README.md": index, **texts}


def _page(name: str, component: Json) -> Iterator[str]:
    yield f"# {name}\n"
    yield f"{component['description']}\n"
    yield "[All components](README.md)\n"
    for language, text in example_of(name).items():
        yield f"**{language}**\n"
        yield f"```{language.lower()}\n{text}```\n"
    yield "## Inputs\n"
    yield from _rows(component["inputProperties"], component["requiredInputs"])
    yield "## Outputs\n"
    yield from _rows(component["properties"], ())
    for token in _types([component["inputProperties"], component["properties"]]):
        known = _SCHEMA["types"][token]
        yield f"## {token.rpartition(':')[2]}\n"
        yield f"{known['description']}\n"
        if "enum" not in known:
            yield from _rows(known["properties"], known["required"])


def _rows(properties: Json, needed: Any) -> Iterator[str]:
    yield "| property | type | meaning |"
    yield "|---|---|---|"
    for name, of in properties.items():
        mark = " **required**" if name in needed else ""
        meaning = of["description"].replace("|", "\\|")
        yield f"| `{name}`{mark} | {_type(of)} | {meaning} |"
    yield ""


def _type(of: Json) -> str:
    return f"{'secret ' if of.get('secret') else ''}{in_words(of, named=_linked)}"


def _linked(name: str) -> str:
    return "anything" if name.startswith("pulumi.json") else f"[{name}](#{name.lower()})"


def _types(properties: Sequence[Json]) -> list[str]:
    """The types that these properties need, each once, in the order in which they come up."""
    tokens: dict[str, None] = {}

    def see(value: Any) -> None:
        if isinstance(value, dict):
            token = str(value.get("$ref", "")).removeprefix("#/types/")
            if token in _SCHEMA["types"] and token not in tokens:
                tokens[token] = None
                see(_SCHEMA["types"][token])
            for item in value.values():
                see(item)

    for each in properties:
        see(each)
    return list(tokens)


def example_of(component: str) -> dict[str, str]:
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


def main() -> None:
    """Write them into the folder of the command line."""
    for name, text in pages().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
