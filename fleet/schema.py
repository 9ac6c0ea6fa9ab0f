"""The JSON Schema of a stack file, for editors."""

from __future__ import annotations

from typing import Any, Final

from components.settings import Settings
from components.settings.mistakes import NAMESPACE
from fleet.stack_file import ROOT

FILE: Final = ROOT / "fleet" / "stack.schema.json"


def schema() -> dict[str, Any]:
    """The settings models as the schema of `Pulumi.<stack>.yaml`; other namespaces are free."""
    settings = Settings.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    definitions = settings.pop("$defs", {})
    keys = {f"{NAMESPACE}:{key}": value for key, value in settings["properties"].items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kai-fleet stack file",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": keys,
                "required": [f"{NAMESPACE}:{key}" for key in settings["required"]],
                "patternProperties": {f"^(?!{NAMESPACE}:)": {}},
                "additionalProperties": False,
            }
        },
        "required": ["config"],
        "$defs": definitions,
    }
