"""The rules, alerts, dashboards and scrape configuration of a fleet: YAML files, filled in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_PLACE: Final = re.compile(r"\{\{([A-Z]\w*)\}\}")  # Prometheus' own places have a space


def fill_in(file: str, words: Mapping[str, str | int]) -> Any:
    """A YAML file of this folder. Raises KeyError for a place that has no word."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return yaml.safe_load(_PLACE.sub(lambda place: str(words[place[1]]), text))
