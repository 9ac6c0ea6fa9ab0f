"""`python -m kai_fleet.package.pages FOLDER`: a page for each component, from the schema."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kai_fleet.package import Json, in_words, page_examples, served_schema

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
    schema = served_schema()
    texts = {}
    index = _INDEX.format(version=schema["version"])
    for token, component in schema["resources"].items():
        name = token.rpartition(":")[2]
        index += f"| [{name}]({name}.md) | {component['description']} |\n"
        texts[f"{name}.md"] = "\n".join(_page(schema, name, component)) + "\n"
    return {"README.md": index, **texts}


def _page(schema: Json, name: str, component: Json) -> Iterator[str]:
    yield f"# {name}\n"
    yield f"{component['description']}\n"
    yield "[All components](README.md)\n"
    for language, text in page_examples.of(name).items():
        yield f"**{language}**\n"
        yield f"```{language.lower()}\n{text}```\n"
    yield "## Inputs\n"
    yield from _rows(component["inputProperties"], component["requiredInputs"])
    yield "## Outputs\n"
    yield from _rows(component["properties"], ())
    for token in _types(schema, [component["inputProperties"], component["properties"]]):
        known = schema["types"][token]
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


def _types(schema: Json, properties: Sequence[Json]) -> list[str]:
    """The types that these properties need, each once, in the order in which they come up."""
    tokens: dict[str, None] = {}

    def see(value: Any) -> None:
        if isinstance(value, dict):
            token = str(value.get("$ref", "")).removeprefix("#/types/")
            if token in schema["types"] and token not in tokens:
                tokens[token] = None
                see(schema["types"][token])
            for item in value.values():
                see(item)

    for each in properties:
        see(each)
    return list(tokens)


def main() -> None:
    """Write them into the folder of the command line."""
    for name, text in pages().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
