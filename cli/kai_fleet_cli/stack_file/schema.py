"""The JSON Schema of a stack file, for editors."""

from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from kai_fleet import settings
from kai_fleet.settings import Settings
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.settings.sections.team_stack import TeamStack

_ENCRYPTED: Final = {
    "type": "object",
    "properties": {"secure": {"type": "string"}},
    "required": ["secure"],
    "additionalProperties": False,
}
FILE: Final = Path(settings.__file__).with_name("stack.schema.json")


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
        return {"anyOf": [schema, _ENCRYPTED]}
    return {key: _or_encrypted(item) for key, item in schema.items()}
