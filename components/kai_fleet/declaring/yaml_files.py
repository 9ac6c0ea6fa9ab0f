"""YAML files with {{Placeholders}}."""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

# A name that begins with a capital; Prometheus' own placeholders have a space: {{ $labels.team }}.
_PLACEHOLDER = re.compile(r"\{\{([A-Z]\w*)\}\}")


def fill(file: Path, values: Mapping[str, object]) -> object:
    """The content of a YAML file with its {{Placeholders}} replaced.

    Each is replaced by the text of the value of its name, which may be no Output, without quotes of
    YAML. A value that no placeholder names is not used. Raises KeyError for a placeholder without a
    value, and yaml.YAMLError if a text makes no YAML.
    """
    text = file.read_text(encoding="utf-8")
    filled = _PLACEHOLDER.sub(lambda placeholder: str(values[placeholder[1]]), text)
    return yaml.safe_load(filled)
