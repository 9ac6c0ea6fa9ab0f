"""Generate from the code: pages of settings, rules, commands and components, and the JSON Schema of
a stack file.

`make reference` writes them; tests compare them. What stands around keys and rules is in templates
beside this file.
"""

import html
import json
import re
import subprocess
import sys
import tempfile
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

import kai_fleet
from docs.field_texts import docstrings, text_of
from kai_fleet.declaring.argument_check import components_of, fields_of
from kai_fleet.provider.constructing import SERVED
from kai_fleet.releases.keys import CHART_PARENT
from kai_fleet_policies.key_paths import NAMESPACE
from kai_fleet_policies.pack.analyzer import EXEMPT_KEY
from kai_fleet_policies.pack.analyzer import schema as pack_schema
from kai_fleet_policies.rules import RULES
from kai_fleet_policies.rules.queues import EXISTING_QUEUES
from kai_fleet_policies.rules.rule import Rule
from kai_fleet_stack import settings
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.models import Strict
from kai_fleet_stack.settings.team_stack import TeamStack

_ENCRYPTED: Final = {
    "type": "object",
    "properties": {"secure": {"type": "string"}},
    "required": ["secure"],
    "additionalProperties": False,
}
FILE: Final = Path(settings.__file__).with_name("stack.schema.json")

_SET_SECRET: Final = "Set it with `pulumi config set --secret --path`."
_REF: Final = "#/$defs/"
_NAMED: Final = {"$ref", "enum", "title"}  # what has a form that is said already
_KINDS: Final = {"object": "mapping", "boolean": "`true`, `false`", "string": "text"}


def schema() -> dict[str, Any]:
    """The settings models as the schema of `Pulumi.<stack>.yaml`; other namespaces are free.

    A file with a team of its own is a team stack's, every other one a platform's.
    """
    definitions: dict[str, Any] = {}
    platform, team = _config(Settings, definitions), _config(TeamStack, definitions)
    marks = [{"required": [f"{NAMESPACE}:{key}"]} for key in ("team", "platform")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kai-fleet stack file",
        "type": "object",
        "properties": {
            "config": {"type": "object", "if": {"anyOf": marks}, "then": team, "else": platform}
        },
        "required": ["config"],
        "$defs": definitions,
    }


class _Described(GenerateJsonSchema):
    """Writes the text of each field of a section into its schema."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        model = schema["cls"]
        if issubclass(model, Strict):
            for name, field in model.model_fields.items():
                described_field = described["properties"][field.alias or name]
                text = text_of(model, name)
                if _is_secret(described_field):
                    text = f"{text} {_SET_SECRET}"
                if text:
                    described_field["description"] = text
        return described


def _is_secret(schema: Mapping[str, Any]) -> bool:
    forms = schema.get("anyOf", [schema])
    return any(form.get("format") == "password" for form in forms)


def _config(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The keys of one kind of stack; what they refer to goes into `definitions`."""
    settings = model.model_json_schema(
        by_alias=True, ref_template="#/$defs/{model}", schema_generator=_Described
    )
    own = _or_encrypted({"properties": settings["properties"], **settings.pop("$defs", {})})
    properties = own.pop("properties")
    definitions.update(own)
    return {
        "properties": {f"{NAMESPACE}:{key}": at for key, at in properties.items()},
        "required": [f"{NAMESPACE}:{key}" for key in settings["required"]],
        "patternProperties": {f"^(?!{NAMESPACE}:)": {}},
        "additionalProperties": False,
    }


def _or_encrypted(schema: Any) -> Any:
    """The same, with `{secure: …}` for each secret, as Pulumi writes it into the file."""
    if isinstance(schema, list):
        return [_or_encrypted(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "password":
        form = {key: item for key, item in schema.items() if key != "description"}
        described = {key: item for key, item in schema.items() if key == "description"}
        return {**described, "anyOf": [form, _ENCRYPTED]}
    return {key: _or_encrypted(item) for key, item in schema.items()}


def settings_page() -> str:
    """Every key of a stack file."""
    whole = schema()
    config, sections = whole["properties"]["config"], []
    for name, definition in sorted(whole["$defs"].items(), key=lambda item: _title(item[0])):
        if "properties" in definition:
            parts = (f"## {_title(name)}", _text(definition), _table(definition))
            sections.append("\n\n".join(filter(None, parts)))
    return _filled(
        "settings",
        platform=_table(config["else"]),
        team=_table(config["then"]),
        sections="\n".join(sections).rstrip(),
    )


def _filled(page: str, **parts: str) -> str:
    template = Path(__file__).with_name(f"{page}.md.template")
    return Template(template.read_text(encoding="utf-8")).substitute(parts)


def _table(model: Mapping[str, Any]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    required = model.get("required", ())
    properties = model["properties"].items()
    for key, field in sorted(properties, key=lambda item: item[0] not in required):
        default = field.get("default")
        words = f"`{str(default).lower() if isinstance(default, bool) else default}`"
        if default is None or default in ({}, [], ""):
            words = ""
        if key in required:
            words = "**required**"
        rows.append(f"| `{key}` | {_values(field)} | {words} | {_text(field)} |")
    return "\n".join(rows) + "\n"


def _values(field: Mapping[str, Any]) -> str:
    """The values that a field takes, each form once."""
    match field:
        case {"$ref": ref}:
            title = _title(ref.removeprefix(_REF))
            return f"[{title}](#{title.lower().replace(' ', '-')})"
        case {"anyOf": forms}:
            return _either(forms)
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"patternProperties": forms}:
            return f"by name: {_either(forms.values())}"
        case {"type": "array"}:
            return f"list of {_either([field.get('items', {})])}"
    kinds = field.get("type", "any value")
    listed = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(_KINDS.get(kind, kind) for kind in listed if kind != "null")


def _either(forms: Iterable[Mapping[str, Any]]) -> str:
    """Forms of which one may be written: each in words of its own, where it has some."""
    named = ("" if form.keys() & _NAMED else _text(form) for form in forms)
    words = (own or _values(form) for own, form in zip(named, forms, strict=True))
    return " or ".join(dict.fromkeys(filter(None, words)))


def _title(name: str) -> str:
    """A model's name as a heading: the schema prefixes those of one name with their modules."""
    if name.startswith("Share_"):
        return "Share"
    module, _, last = name.rpartition("__")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last)
    of = module.rpartition("__")[2].rstrip("s")
    return f"{words} of a {of}" if of else words


def _text(described: Mapping[str, Any]) -> str:
    """A description on one line of a table."""
    return _one_line(described.get("description", ""))


def rules_page() -> str:
    """The rules, from what they say of themselves."""
    rows = [f"| [`{r.name}`](#{r.name}) | {r.level} | {r.severity} |" for r in RULES]
    return _filled(
        "rules",
        rows="\n".join(rows),
        sections="\n".join(map(_section, RULES)),
        exempt_key=EXEMPT_KEY,
        existing_queues=EXISTING_QUEUES,
        chart_parent=CHART_PARENT,
    )


def _section(rule: Rule) -> str:
    keys = ", ".join(f"`{key}`" for key in pack_schema(rule.name))
    paragraphs = (
        f"## {rule.name}",
        f"{rule.demand} ({rule.level}, severity {rule.severity})",
        rule.reason,
        keys and f"Configuration: {keys}.",
    )
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def commands_page() -> str:
    """Every command, as typer describes it."""
    with tempfile.NamedTemporaryFile("r", suffix=".md") as page:
        typer = [str(Path(sys.executable).with_name("typer")), "kai_fleet_cli.app"]
        words = ["utils", "docs", "--name", "fleet", "--title", "Commands", "--output", page.name]
        root = Path(__file__).parents[1]
        subprocess.run(
            [*typer, *words],
            cwd=root,
            env={"PYTHONPATH": str(root)},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return html.unescape(Path(page.name).read_text(encoding="utf-8"))


_PLAIN_TYPES: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true`, `false`",
    Any: "any value",
}


def components_page() -> str:
    """Arguments and outputs of every component, from its TypedDict and its annotations."""
    described = dict[str, str]()
    parts = [_component(component, described) for component in SERVED]
    nested = [described[name] for name in sorted(described)]
    return _filled("components", components="\n".join(parts), nested="\n".join(nested).rstrip())


def _component(component: Any, described: dict[str, str]) -> str:
    """The section of one component. Add those of the TypedDicts in its arguments to `described`."""
    args = getattr(kai_fleet, f"{component.__name__}Args")
    summary = component.__doc__.partition("Raises:")[0]
    # In Python 3.11 a TypedDict does not know the one that it extends.
    texts = docstrings(SERVED[component]) | docstrings(args)
    arguments = _arguments(args, texts, described)
    outputs = docstrings(component)
    rows = [f"| `{name}` | {_one_line(text)} |" for name, text in outputs.items()]
    sections = [f"## {component.__name__}", _paragraphs(summary), arguments]
    if rows:
        sections.append("\n".join(["| output | meaning |", "|---|---|", *rows]) + "\n")
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def _arguments(args: Any, texts: Mapping[str, str], described: dict[str, str]) -> str:
    rows = ["| argument | value | meaning |", "|---|---|---|"]
    hints = fields_of(args)
    for name in sorted(hints, key=lambda name: name not in args.__required_keys__):
        text = _one_line(texts[name])
        if name in args.__required_keys__:
            text = f"**Required.** {text}"
        rows.append(f"| `{name}` | {_type(hints[name], described)} | {text} |")
    return "\n".join(rows) + "\n"


def _type(hint: Any, described: dict[str, str]) -> str:
    """A type in words, with links to the TypedDicts in it, which are added to `described`."""
    parts = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Union | types.UnionType:
            components = [
                f"[{part.__name__}](#{part.__name__.lower()})" for part in components_of(hint)
            ]
            return " or ".join([*components, _type(parts[0], described)])
        case origin if origin is Mapping:
            return f"by name: {_type(parts[1], described)}"
        case origin if origin is Sequence:
            return f"list of {_type(parts[0], described)}"
    if hint in _PLAIN_TYPES:
        return _PLAIN_TYPES[hint]
    for component, served in SERVED.items():
        if hint is served:
            name = component.__name__
            return f"arguments of [{name}](#{name.lower()})"
    name = hint.__name__
    if typing.is_typeddict(hint) and name not in described:
        described[name] = ""  # QueueArgs has itself as its children
        described[name] = "\n\n".join(
            [
                f"## {name}",
                _paragraphs(hint.__doc__),
                _arguments(hint, docstrings(hint), described),
            ]
        )
    return f"[{name}](#{name.lower()})"


def _paragraphs(docstring: str) -> str:
    paragraphs = docstring.strip().split("\n\n")
    return "\n\n".join(map(_one_line, paragraphs))


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    pages = {
        "settings": settings_page,
        "rules": rules_page,
        "commands": commands_page,
        "components": components_page,
    }
    for name, page in pages.items():
        Path(__file__).with_name(f"{name}.md").write_text(page(), encoding="utf-8")
