"""Read YAML as Pulumi's engine does, within limits; and the files that a stack file names.

The engine passes values on as JSON: texts, numbers, true, false, null. What its reader takes for
another number, or for a date, is refused. A few lines of aliases can stand for billions of values,
so values are counted as they are built.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BeforeValidator, WithJsonSchema
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)

from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.sections.models import refuse
from kai_fleet.values import get

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200

_TAGS: Final = {ScalarEvent: "str", MappingStartEvent: "map"}
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?", re.ASCII | re.I)
_WORDS: Final = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# Octal, hexadecimal, _ in numbers, infinity, numbers beyond 64 bits; dates.
_DIFFERS: Final = re.compile(
    r"[-+]?(0(x[0-9a-f_]+|[bo]?[-+]?[0-9_]+)|(?=.*[0-9])[0-9.]*_[0-9._]*(e.*)?|\.(inf|nan)|[0-9]{17,}"
    r"|[0-9.]+e[-+]?[0-9]{3,})|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?",
    re.ASCII | re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class RefusedYamlError(ValueError):
    """The text is no YAML, or not read; the message begins with its place."""

    def __init__(self, mark: Any, problem: str) -> None:
        line, column = (mark.line, mark.column) if mark else (0, 0)
        super().__init__(f"line {line + 1} column {column + 1}: {problem}")


def load(text: str) -> Any:
    """Return what the text holds. Raises RefusedYamlError."""
    first, *more = load_all(text) or [None]
    if more:
        raise RefusedYamlError(None, "begins several documents (---); write one")
    return first


def load_all(text: str) -> list[Any]:
    """Return each document of the text, with limits for all together. Raises RefusedYamlError."""
    if len(text) > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise RefusedYamlError(None, f"is longer than {most}; move queues to other files")
    events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
    try:
        starts = (event for event in events if isinstance(event, DocumentStartEvent))
        return [_Document(events).value(next(events))[0] for _ in starts]
    except (yaml.YAMLError, UnicodeError) as error:
        mark, problem = (getattr(error, key, None) for key in ("problem_mark", "problem"))
        cause = f"is no YAML: {problem or 'it has a control character, or half of one'}"
        raise RefusedYamlError(mark, f"{cause}; check the text there") from None


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping that a file is; empty for one that is not there, is none, or cannot be read."""
    try:
        document = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Document:
    """One document, built from the parser's events."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors = dict[str, tuple[Any, int]]()  # values and their sizes

    def value(self, event: Any, level: int = 0) -> tuple[Any, int]:
        """The value that begins with an event, and for how many values it stands."""
        mark, name = event.start_mark, event.anchor
        if isinstance(event, AliasEvent):
            if name not in self.anchors:
                raise RefusedYamlError(mark, f"has *{name}, no value above it; write it out")
            return self.anchors[name]
        self.anchors.pop(name, None)
        if event.tag not in (None, f"tag:yaml.org,2002:{_TAGS.get(type(event), 'seq')}"):
            raise RefusedYamlError(mark, "has a tag (!…); drop it, and write text in quotes")
        if level > MOST_LEVELS:
            raise RefusedYamlError(mark, f"is {MOST_LEVELS} levels deep; write it flatter")
        value, size = self._value(event, level + 1)
        if size > MOST_VALUES:
            most = f"{MOST_VALUES:,} values"
            raise RefusedYamlError(mark, f"stands for more than {most}; use no aliases")
        if name:
            self.anchors[name] = value, size
        return value, size

    def _value(self, event: Any, level: int) -> tuple[Any, int]:
        if isinstance(event, ScalarEvent):
            return _scalar(event), 1
        whole, merged, size = dict[str, Any](), dict[str, Any](), 1
        items = list[Any]()
        while not isinstance(inner := next(self.events), CollectionEndEvent):
            if not isinstance(event, MappingStartEvent):
                item, more = self.value(inner, level)
                items.append(item)
            elif getattr(inner, "value", "") == "<<" and not inner.style:
                item, more = self.value(next(self.events), level)
                others = item if isinstance(item, list) else [item]
                if not all(isinstance(other, dict) for other in others):
                    raise RefusedYamlError(inner.start_mark, "merges what is no mapping (<<)")
                merged = {key: other[key] for other in (*others[::-1], merged) for key in other}
            else:
                key = _scalar(inner) if isinstance(inner, ScalarEvent) else None
                shown = _shown(getattr(inner, "value", "…"))
                if not isinstance(key, str):
                    cause = f"has the key {shown}, which is no text"
                    raise RefusedYamlError(inner.start_mark, f"{cause}; put it in quotes")
                if key in whole:
                    again = f"has the key {shown} again, in the same mapping"
                    raise RefusedYamlError(inner.start_mark, again)
                whole[key], more = self.value(next(self.events), level)
            size += more
        return ({**merged, **whole} if isinstance(event, MappingStartEvent) else items), size


def _scalar(event: Any) -> Any:
    text, plain = event.value, not event.style and event.tag is None
    if _CONTROL.search(text):
        raise RefusedYamlError(
            event.start_mark, f"has a control character: {_shown(text)}; take it out"
        )
    if plain and _DIFFERS.fullmatch(text):
        raise RefusedYamlError(
            event.start_mark,
            f"has {_shown(text)}, which is another value for other readers; write a plain number,"
            " or put it in quotes if it is text",
        )
    if plain and text in _WORDS:
        return _WORDS[text]
    if plain and _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return text


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else f"{text[:37]}…")


def _named(name: str) -> str:
    """The content of a file that a stack file names. Raises ValueError; its name goes before."""
    try:
        path = (ROOT / name.partition("\0")[0]).resolve()
        if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
            raise ValueError("which is no YAML file below this project's folder; write one that is")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError("which is not there; write the path from the project's folder") from None
    except (OSError, RuntimeError, UnicodeError) as why:  # also links in a circle
        raise ValueError(f"which cannot be read: {why}") from None


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises ValueError."""
    try:
        return load(_named(queues)) if isinstance(queues, str) else queues
    except ValueError as why:
        raise ValueError(f"names {queues}, {why}") from None


def _documents(path: Any) -> Any:
    """The documents of a file, empty ones left out. Raises ValueError."""
    try:
        return [document for document in load_all(_named(path)) if document is not None]
    except ValueError as why:
        raise ValueError(f"names {path}, {why}") from None


def _by_path(paths: Any) -> Any:
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("is no list of files; write [workloads/train.yaml]")
    return {path: path for path in paths}


def _is_no_object(document: dict[str, Any]) -> bool:
    names = (document.get("apiVersion"), document.get("kind"), get(document, "metadata", "name"))
    return not all(isinstance(name, str) for name in names)


_PATH: Final = {"type": "string", "pattern": r"\.ya?ml$"}
TreeFile = Annotated[str, WithJsonSchema({**_PATH, "description": "A YAML file with the tree."})]
_Manifest = Annotated[
    dict[str, Any],
    refuse(_is_no_object, "is no Kubernetes object; write apiVersion, kind and metadata.name"),
]
# The objects of files by path; a stack file has a list of paths.
Manifests = Annotated[
    dict[str, Annotated[list[_Manifest], BeforeValidator(_documents)]],
    BeforeValidator(_by_path),
    WithJsonSchema({"type": "array", "items": _PATH}),
]
