"""The components for Pulumi programs of every language: schema, inputs, construction.

What a program gives is read by the settings models that read a stack file, judged by the same
rules, and handed to the components that this repository's own program declares.

Pulumi's component host (`pulumi.provider.experimental`) would write the schema from type hints. As
of the SDK 3.272 it serves no resources and functions beside components, knows no secrets, defaults,
Literal types or types of two components' name, drops unknown inputs in silence, and answers
mistakes with a stack trace. So the schema comes from the settings models, and only the call
`Construct` is the SDK's.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

Json = Mapping[str, Any]
SCHEMA_FILE: Final = Path(__file__).with_name("schema.json")


def served_schema() -> Any:
    """The schema that the plugin serves, which ships with the package."""
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def referred(of: Json) -> str:
    """The name of the type that a property of the schema refers to."""
    return str(of["$ref"]).rpartition(":")[2]


def in_words(of: Json, article: str = "", named: Callable[[str], str] = str) -> str:
    """The type of a property of the schema; `named` writes the name of one that is referred to."""
    if "$ref" in of:
        return named(referred(of))
    if of["type"] == "array":
        return f"{article}list of {in_words(of['items'], article, named)}"
    if "additionalProperties" in of:
        return f"{article}map of {in_words(of['additionalProperties'], article, named)}"
    return str(of["type"])
