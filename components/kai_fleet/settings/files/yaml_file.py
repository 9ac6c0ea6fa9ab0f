"""Reading YAML as the engine does: two keys of one name are an error."""

from __future__ import annotations

import re
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kai_fleet.settings.files.yaml_limits import Odd, check

__all__ = ["Odd", "load", "mistake"]


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


_CONFLICT: Final = re.compile(r"^\s*([<>=|])\1{6}(?= |$)", re.MULTILINE)
_ODD_SPACE: Final = re.compile(r"[^\S\t\n\r ]|[\u200b\ufeff]")  # a browser's, pasted
_NO_SPACE: Final = re.compile(r"\s*([\w-]+):([^\s:]+)\s*", re.ASCII)
_NO_ANCHOR: Final = re.compile(r"found undefined alias '(.*?)'")
_DUPLICATE: Final = re.compile(r'found duplicate key "(.*?)" with value')
# Of the parser's words, and what they mean to somebody who edits the file.
_MEANS: Final = (
    (r"found character '\\t'", "has a tab; indent with spaces"),
    ("mapping values are not allowed", "a key where none can be: check the indentation, or quotes"),
    (r"expected <block end>, but found '[]}]'", "has a } or ] too many"),
    ("expected <block end>|did not find expected", "is indented otherwise than the lines above"),
    ("found another document", "begins a second document (---); keep one"),
    ("cannot start any token", "begins a value with a character of YAML's own; put it in quotes"),
    ("expected alphabetic", "has * or & without a name; put such text in quotes"),
)
# Those that the parser notices lines later: what they mean where it began to read.
_MEANS_BEFORE: Final = (
    ("could not find expected ':'", "is no key with a value; write `key: value`, with the space"),
    ("unexpected end of stream", "has a quote that is not closed"),
    ("expected ',' or|<stream end>", "has a { or [ that is not closed, or lacks a comma"),
)


def mistake(text: str, why: MarkedYAMLError) -> str:
    """Where a text is no YAML, and what is wrong: `line 3: has a tab; indent with spaces`."""
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start(1)) + 1
        return f"line {line}: has a merge conflict ({conflict[0].strip()}); resolve it"
    said = str(why.problem or why.context)
    if twice := _DUPLICATE.match(said):
        said = f"has the key {twice[1]} again, in the same mapping"
    if nobody := _NO_ANCHOR.match(said):
        said = f"names *{nobody[1]}, and no &{nobody[1]} stands above it"
    said = next((means for words, means in _MEANS if re.search(words, said)), said)
    mark = why.problem_mark or why.context_mark
    if before := [means for words, means in _MEANS_BEFORE if re.search(words, said)]:
        said, mark = before[0], why.context_mark or mark
    if mark is None:
        return said
    lines = text.split("\n")
    for number in (mark.line, mark.line - 1):
        wrong = lines[number] if 0 <= number < len(lines) else ""
        if odd := _ODD_SPACE.search(wrong):
            code = f"U+{ord(odd[0]):04X}"
            also = f"has a character that looks like a space ({code}); write a plain space"
            return f"line {number + 1}: {also}"
        if key := _NO_SPACE.fullmatch(wrong):
            also = f"has no space after the colon; write {key[1]}: {key[2]}"
            return f"line {number + 1}: {also}"
    return f"line {mark.line + 1}: {said}"
