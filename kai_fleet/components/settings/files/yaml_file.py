"""Reading YAML as the engine does: two keys of one name are an error."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kai_fleet.components.settings.files.yaml_limits import Odd, check

__all__ = ["Odd", "load", "place"]


def load(text: str) -> Any:
    """What the text says. Raises YAMLError, ValueError and RecursionError; Odd, a ValueError, for
    what engine and plan would read differently.

    By libyaml: a thousand queues in a tenth of a second. It refuses some of what YAML allows, such
    as a key with a colon between braces, and says less well what is wrong; so its refusal is not
    the last word.
    """
    check(text)
    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, ValueError):
        return YAML(typ="safe", pure=True).load(text)


def place(why: MarkedYAMLError) -> str:
    """Where a text is wrong, as ` line 3`; "" where that is not known."""
    mark = why.problem_mark or why.context_mark
    return f" line {mark.line + 1}" if mark is not None else ""
