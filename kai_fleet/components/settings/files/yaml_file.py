"""Reading YAML as the engine does: two keys of one name are an error."""

from __future__ import annotations

import re
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kai_fleet.components.settings.files.yaml_limits import Odd, check

__all__ = ["Odd", "load", "mistake", "place"]


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


_CONFLICT: Final = re.compile(r"^(<<<<<<<|>>>>>>>)(?= |$)", re.MULTILINE)
_DUPLICATE: Final = re.compile(r'found duplicate key "(.*?)" with value')
# Of the parser's words, and what they mean to somebody who edits the file.
_MEANS: Final = (
    (r"found character '\\t'", "has a tab; indent with spaces"),
    ("mapping values are not allowed", "a key where none can be: check the indentation, or quotes"),
    ("expected <block end>|did not find expected", "is indented otherwise than the lines above"),
)


def mistake(text: str, why: MarkedYAMLError) -> str:
    """Where a text is no YAML, and what is wrong: `line 3: has a tab; indent with spaces`."""
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        return f"line {line}: has a merge conflict ({conflict[0]}); resolve it"
    said = str(why.problem or why.context)
    if twice := _DUPLICATE.match(said):
        said = f"has the key {twice[1]} again, in the same mapping"
    said = next((means for words, means in _MEANS if re.search(words, said)), said)
    return f"{place(why).strip()}: {said}".removeprefix(": ")


def place(why: MarkedYAMLError) -> str:
    """Where a text is wrong, as ` line 3`; "" where that is not known."""
    mark = why.problem_mark or why.context_mark
    return f" line {mark.line + 1}" if mark is not None else ""
