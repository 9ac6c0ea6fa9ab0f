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
from pathlib import Path
from typing import Any, Final

SCHEMA_FILE: Final = Path(__file__).with_name("schema.json")


def served_schema() -> Any:
    """The schema that the plugin serves, which ships with the package."""
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
