"""Every key of a stack file: as a JSON Schema for editors, and as the page docs/settings.md.

Both are written with `make reference`; tests compare them with the settings.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from kai_fleet import settings
from kai_fleet.settings import Settings
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.sections.team_stack import TeamStack

FILE: Final = Path(settings.__file__).with_name("stack.schema.json")

_HEAD: Final = """\
# Settings

Every key of `Pulumi.STACK.yaml`, as the program reads it. Editors complete and check the same keys
by `components/kai_fleet/settings/stack.schema.json`.
An unknown key is refused, with the key that was probably meant or the section that it belongs to.

Amounts are Kubernetes quantities (`500m`, `64Gi`, `0.5`) or `unlimited`. CPU counts cores, memory
bytes, `gpu` devices. A *name* is lower-case letters, digits and dashes.
"""
_PLATFORM: Final = "## A platform's stack\n"
_TEAM: Final = """\
## A team's own stack

Its platform is another stack, which grants it: [team-stacks](team-stacks.md).
"""
_REF: Final = "#/$defs/"


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


def _config(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """The keys of one kind of stack; what they refer to goes into `definitions`."""
    settings = model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    definitions.update(settings.pop("$defs", {}))
    return {
        "properties": {f"{NAMESPACE}:{key}": at for key, at in settings["properties"].items()},
        "required": [f"{NAMESPACE}:{key}" for key in settings["required"]],
        "patternProperties": {f"^(?!{NAMESPACE}:)": {}},
        "additionalProperties": False,
    }


def page() -> str:
    """The whole page."""
    whole = schema()
    definitions: Mapping[str, Any] = whole["$defs"]
    config = whole["properties"]["config"]
    parts = [_HEAD, _PLATFORM, _table(config["else"]), _TEAM, _table(config["then"])]
    for name, definition in sorted(definitions.items(), key=lambda item: _title(item[0])):
        if "properties" in definition:
            about = _text(definition.get("description", ""))
            parts += [
                f"## {_title(name)}\n",
                *([f"{about}\n"] if about else []),
                _table(definition),
            ]
    return "\n".join(parts).rstrip() + "\n"


def _table(model: Mapping[str, Any]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    required = model.get("required", ())
    for key, field in model["properties"].items():
        default = "**required**" if key in required else _default(field)
        meaning = _text(field.get("description", ""))
        rows.append(f"| `{key}` | {' or '.join(_values(field))} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _default(field: Mapping[str, Any]) -> str:
    default = field.get("default")
    if default is None or default in ({}, [], ""):
        return ""
    written = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{written}`"


def _values(field: Mapping[str, Any]) -> Iterator[str]:
    """What may be written there, each form once."""
    if "$ref" in field:
        yield _link(field["$ref"].removeprefix(_REF))
    elif "anyOf" in field:
        forms = [form for each in field["anyOf"] for form in _form(each)]
        yield from dict.fromkeys(form for form in forms if form)
    elif "enum" in field:
        yield ", ".join(f"`{value}`" for value in field["enum"])
    elif "patternProperties" in field:
        below = [form for each in field["patternProperties"].values() for form in _values(each)]
        yield f"by name: {' or '.join(dict.fromkeys(below))}"
    elif field.get("type") == "array":
        yield f"list of {' or '.join(_values(field.get('items', {}))) or 'values'}"
    elif field.get("description") and "title" not in field:
        yield _text(field["description"])  # a form with words of its own
    else:
        kinds = field.get("type", "any value")
        listed = [kinds] if isinstance(kinds, str) else list(kinds)
        yield " or ".join(_KINDS.get(kind, kind) for kind in listed if kind != "null")


def _form(form: Mapping[str, Any]) -> Iterator[str]:
    """One form of several: in its own words, where it is an amount."""
    if "anyOf" in form and "description" in form:
        yield _text(form["description"])
    else:
        yield from _values(form)


_KINDS: Final = {"object": "mapping", "boolean": "`true`, `false`", "string": "text"}


def _link(name: str) -> str:
    title = _title(name)
    return f"[{title}](#{title.lower().replace(' ', '-')})"


def _title(name: str) -> str:
    """A model's name as a heading: the schema prefixes those of one name with their modules."""
    if name.startswith("Share_"):
        return "Share"
    module, _, last = name.rpartition("__")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last)
    of = module.rpartition("__")[2].rstrip("s")
    return f"{words} of a {of}" if of else words


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
