"""Edit a stack file's text by ruamel's round trip, and write files atomically."""

import io
import json
import os
import tempfile
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import ScalarString

from kai_fleet_cli.errors import UserError
from kai_fleet_stack.settings.files import yaml_file

Keys = tuple[str, ...]
# In place of a value: the key is removed.
GONE = object()


def with_value(text: str, keys: Keys, value: object, name: str) -> str:
    """A stack file's text with another value at one key; every other byte stays where it can.

    Mappings that are missing above the key are added, also in place of null.

    Args:
        text: The text, which `reading.parse` has accepted.
        keys: The keys that lead to the value, from the top: `config` is the first.
        value: The value; GONE removes the key.
        name: The name of the file, for messages.

    Raises:
        UserError: Other keys would change as well, because they share values by YAML anchors.
        KeyError: The key to remove is not there.
        AttributeError: A key above it has another value that is no mapping.
    """
    expected = _parsed(text)
    _put(expected, keys, value)
    yaml = _round_trip()
    document = yaml.load(text)
    before = _lines(yaml, document)
    _put(document, keys, value)
    after = _lines(yaml, document)
    for candidate in (_merged(text, before, after), "".join(after)):
        if _parsed(candidate) == expected:
            return candidate
    raise UserError(
        f"{'.'.join(keys[1:])} in {name} shares values with other keys by YAML anchors, so this"
        " command does not edit it: edit the file, then run the update"
    )


def _round_trip() -> YAML:
    """A reader and writer that keeps comments, quotes and the style of our stack files."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10**6
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _lines(yaml: YAML, document: object) -> list[str]:
    """The lines that ruamel writes of a document, each with its line break."""
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue().splitlines(keepends=True)


def _parsed(text: str) -> Any:
    """The value of a YAML text, in which no two keys share an object; None if it is no YAML, or
    empty.
    """
    try:
        return json.loads(json.dumps(yaml_file.load(text), default=str))
    except ValueError:
        return None


def _put(document: Any, keys: Keys, value: object) -> None:
    """Set or remove a value in a document, in place. A text keeps the quotes of the one before.

    Adds mappings above it, and raises KeyError and AttributeError, as `with_value`.
    """
    mapping = document
    *above, last = keys
    for key in above:
        if mapping.get(key) is None:
            mapping[key] = type(document)()
        mapping = mapping[key]
    before = mapping.get(last)
    if value is GONE:
        del mapping[last]
        return
    mapping[last] = type(before)(value) if isinstance(before, ScalarString) else value


def _merged(text: str, before: list[str], after: list[str]) -> str:
    """The original text with the lines that an edit changes.

    `before` and `after` are the lines that ruamel writes without and with the edit: it may space
    the original's other lines in another way. Comments on lines of their own stay in place, below
    what is removed and above what is added. Where ruamel adds or drops lines of the original, its
    text is returned.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) != len(before):
        return "".join(after)
    merged: list[str] = []
    edits = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for operation, start, stop, after_start, after_stop in edits:
        old = lines[start:stop]
        new = after[after_start:after_stop]
        if operation == "equal":
            merged += old
        elif operation == "delete":
            merged += _last_comments(old)
        elif operation == "insert":
            comments = _last_comments(merged)
            position = len(merged) - len(comments)
            merged[position:] = new + comments
        elif len(old) == len(new):
            merged += map(_indented_like, old, new)
        else:
            merged += new
    return "".join(merged)


def _indented_like(model: str, line: str) -> str:
    """A line with the indentation of another."""
    indent = model[: len(model) - len(model.lstrip())]
    return indent + line.lstrip()


def _last_comments(lines: Sequence[str]) -> list[str]:
    """The comments and blank lines at the end of these lines."""
    comments = list(takewhile(_is_comment_or_blank, reversed(lines)))
    return comments[::-1]


def _is_comment_or_blank(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def write_atomically(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace a file atomically.

    Args:
        path: The file, or a link to it, which stays a link.
        content: Its new content.
        mode: Its new mode; None keeps the one that it has, so the file has to exist.

    Raises:
        UserError: The file cannot be written, or is missing and `mode` is None; or its folder is
            missing.
    """
    target = Path(os.path.realpath(path))
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            new = Path(folder, target.name)
            with new.open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
            new.chmod(target.stat().st_mode & 0o777 if mode is None else mode)
            new.replace(target)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
