"""Edit a stack file's text by ruamel's round trip, and write files atomically."""

import io
import json
import os
import tempfile
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import ScalarString

from kai_fleet.settings.files import yaml_file
from kai_fleet_cli.errors import UserError

Keys = tuple[str, ...]
GONE: Final = object()


def changed(text: str, keys: Keys, value: Any, name: str) -> str:
    """The text with another value at `keys`, or without that key (GONE). `name` is the file's.

    Raises UserError where nothing but that place cannot be changed, because of anchors.
    """
    expected = _plain(text)
    _put(expected, keys, value)
    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 10**6
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(text)
    before = _lines(yaml, document)
    _put(document, keys, value)
    after = _lines(yaml, document)
    for candidate in (_merged(text, before, after), "".join(after)):
        if _plain(candidate) == expected:
            return candidate
    raise UserError(
        f"{'.'.join(keys[1:])} in {name} shares values with other keys by YAML anchors, so this"
        " command does not edit it: edit the file, then run the update"
    )


def _lines(yaml: YAML, document: Any) -> list[str]:
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue().splitlines(keepends=True)


def _plain(text: str) -> Any:
    """The parsed text, without shared values; None where it is no YAML."""
    try:
        return json.loads(json.dumps(yaml_file.load(text), default=str))
    except ValueError:
        return None


def _put(document: Any, keys: Keys, value: Any) -> None:
    """Set or remove one value. Mappings above it that are missing are added."""
    here, last = document, keys[-1]
    for key in keys[:-1]:
        if not here.get(key):
            here[key] = type(document)()
        here = here[key]
    if value is GONE:
        del here[last]
    elif isinstance(here.get(last), ScalarString):  # with the quotes of the old one
        here[last] = type(here[last])(value)
    else:
        here[last] = value


def _merged(text: str, before: list[str], after: list[str]) -> str:
    """Put the edit's lines into the original text, whose spacing ruamel may change.

    Whole-line comments below what is removed, or above where something is added, stay in place.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) != len(before):
        return "".join(after)
    merged: list[str] = []
    edits = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for kind, start, stop, first, last in edits:
        old, new = lines[start:stop], after[first:last]
        if kind == "equal":
            merged += old
        elif kind == "delete":
            merged += _comments(old)
        elif len(old) == len(new):
            indents = (line[: len(line) - len(line.lstrip())] for line in old)
            merged += [indent + line.lstrip() for indent, line in zip(indents, new, strict=True)]
        else:
            above = _comments(merged) if kind == "insert" else []
            merged[len(merged) - len(above) :] = [*new, *above]
    return "".join(merged)


def _comments(lines: list[str]) -> list[str]:
    """The comments and blank lines at the end of these lines."""
    last = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines[::-1])
    return [*last][::-1]


def put(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file atomically; without a mode it keeps the one that it has. Raises UserError."""
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            new = Path(folder, target.name)
            with new.open("w", encoding="utf-8", newline="") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            new.chmod(target.stat().st_mode & 0o777 if mode is None else mode)
            new.replace(target)
    except OSError as why:
        raise UserError(f"{path} cannot be written: {why.strerror}") from None
