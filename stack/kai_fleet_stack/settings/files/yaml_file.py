"""Read YAML as Pulumi's engine does, within bounds; and read the files that a stack file names.

The engine passes values on as JSON: texts, numbers, true, false, null. A scalar that the engine's
reader takes for another number, or for a date, is refused. A few lines with aliases can stand for
billions of values, so values are counted while they are built.

Pulumi gives all of a stack file to each plugin in one environment variable. Linux limits that to
128 KiB, which is about 1,200 queues. Files that a stack file names do not count.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar

import yaml
from pydantic import WithJsonSchema

from kai_fleet import marks
from kai_fleet_stack.project import ROOT

T = TypeVar("T")
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200
_MOST_SHOWN: Final = 40  # characters of a text

Node = yaml.ScalarEvent | yaml.CollectionStartEvent
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?", re.ASCII | re.I)
# Scalars without quotes that are no texts.
_WORDS: Final = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
# Scalars without quotes that other readers take for another value: octal and hexadecimal numbers,
# numbers with _, infinity, numbers beyond 64 bits, dates.
_DIFFERS: Final = re.compile(
    r"[-+]?(0(x[0-9a-f_]+|[bo]?[-+]?[0-9_]+)|(?=.*[0-9])[0-9.]*_[0-9._]*(e.*)?|\.(inf|nan)|[0-9]{17,}"
    r"|[0-9.]+e[-+]?[0-9]{3,})|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?",
    re.ASCII | re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Mark(Protocol):
    """A position in a text, from 0."""

    @property
    def line(self) -> int:
        """The line."""

    @property
    def column(self) -> int:
        """The column."""


class RefusedYamlError(ValueError):
    """The text is no YAML, or is refused. The message begins with line and column, from 1."""

    def __init__(self, mark: Mark | None, problem: str) -> None:
        line = mark.line if mark else 0
        column = mark.column if mark else 0
        super().__init__(f"line {line + 1} column {column + 1}: {problem}")


def load(text: str) -> Any:
    """The value of a text with one document; None for an empty text.

    Raises:
        RefusedYamlError: as for `load_all`, or the text has several documents.
    """
    documents = load_all(text)
    if len(documents) > 1:
        raise RefusedYamlError(None, "begins several documents (---); write one")
    return documents[0] if documents else None


def load_all(text: str) -> list[Any]:
    """The values of all documents of a text. The bounds hold for all of them together.

    Raises:
        RefusedYamlError: the text is no YAML; is longer than 8 Mi characters; has a tag, a key that
            is no text or twice in a mapping, an alias without an anchor above it, a control
            character, a mark of Pulumi's protocol, or a scalar that other readers take for another
            value; has more than 200 levels; or stands for more than a million values.
    """
    if len(text) > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise RefusedYamlError(None, f"is longer than {most}; move queues to other files")
    try:
        return list(_Builder(text).documents())
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        cause = f"is no YAML: {problem or 'it has a control character, or half of one'}"
        raise RefusedYamlError(mark, f"{cause}; check the text there") from None


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping in a file; empty if the file is absent, cannot be read, or has another value."""
    try:
        document = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Anchored(NamedTuple):
    """A value with an anchor, and the number of values in it, itself included."""

    value: Any
    size: int


class _Builder:
    """Builds the values of a text from the parser's events, and counts them in `size`."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.size = 0
        self.anchors = dict[str | None, _Anchored]()

    def documents(self) -> Iterator[Any]:
        """The value of each document."""
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors.clear()
                yield self.value(next(self.events))

    def value(self, event: yaml.AliasEvent | Node, level: int = 0) -> Any:
        """The value that begins with an event; takes its further events from `events`."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, level)
        if event.tag not in (None, f"tag:yaml.org,2002:{_kind(event)}"):
            raise RefusedYamlError(
                event.start_mark, "has a tag (!…); drop it, and write text in quotes"
            )
        before = self.size
        self._count(1, level, event.start_mark)
        # An alias inside the value must not find the value, which would have no end.
        self.anchors.pop(event.anchor, None)
        value = self._content(event, level + 1)
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, self.size - before)
        return value

    def _alias(self, event: yaml.AliasEvent, level: int) -> Any:
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            cause = f"has *{event.anchor}, no value above it"
            raise RefusedYamlError(event.start_mark, f"{cause}; write it out")
        self._count(anchored.size, level, event.start_mark)
        return anchored.value

    def _count(self, values: int, level: int, mark: Mark | None) -> None:
        if level > MOST_LEVELS:
            raise RefusedYamlError(mark, f"is {MOST_LEVELS} levels deep; write it flatter")
        self.size += values
        if self.size > MOST_VALUES:
            most = f"{MOST_VALUES:,} values"
            raise RefusedYamlError(mark, f"stands for more than {most}; use no aliases")

    def _content(self, event: Node, level: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(level)
        return [self.value(element, level) for element in self._until_end()]

    def _until_end(self) -> Iterator[Any]:
        """The events that begin the parts of a collection."""
        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _mapping(self, level: int) -> dict[str, Any]:
        """A mapping. The keys of the mapping at `<<` are the defaults of the others."""
        pairs = dict[str, Any]()
        for event in self._until_end():
            key = self.value(event, level) if isinstance(event, yaml.ScalarEvent) else None
            cause = f"has the key {_shown(getattr(event, 'value', '?'))}"
            if not isinstance(key, str):
                raise RefusedYamlError(
                    event.start_mark, f"{cause}, which is no text; put it in quotes"
                )
            if key in pairs:
                raise RefusedYamlError(event.start_mark, f"{cause} again, in the same mapping")
            pairs[key] = self.value(next(self.events), level)
            if key == "<<" and (event.style or not isinstance(pairs[key], dict)):
                why = "merges what is no mapping, or has << in quotes; write the keys out"
                raise RefusedYamlError(event.start_mark, why)
        defaults = pairs.pop("<<", {})
        return {**defaults, **pairs}


def _kind(event: Node) -> str:
    """The end of the tag that the event's value has without a tag in the text."""
    if isinstance(event, yaml.ScalarEvent):
        return "str"
    return "map" if isinstance(event, yaml.MappingStartEvent) else "seq"


def _scalar(event: yaml.ScalarEvent) -> str | float | bool | None:
    """The value of a scalar. Raises RefusedYamlError."""
    text: str = event.value
    if _CONTROL.search(text):
        raise RefusedYamlError(
            event.start_mark, f"has a control character: {_shown(text)}; take it out"
        )
    if marks.has_mark(text):
        raise RefusedYamlError(event.start_mark, marks.REFUSAL)
    if event.style or event.tag is not None:
        return text
    if _DIFFERS.fullmatch(text):
        raise RefusedYamlError(
            event.start_mark,
            f"has {_shown(text)}, which is another value for other readers; write a plain number,"
            " or put it in quotes if it is text",
        )
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return text


def _shown(text: str) -> str:
    """The text for a message: escaped, and at most 40 characters before that."""
    if len(text) > _MOST_SHOWN:
        text = f"{text[: _MOST_SHOWN - 3]}…"
    return ascii(text)


def named(name: str, read: Callable[[str], T]) -> T:
    """The result of `read` for the text of a file that a stack file names.

    Args:
        name: path from the project's folder.

    Raises:
        ValueError: the file is not below the project's folder, is not called .yaml or .yml, is
            absent or cannot be read, or `read` raises ValueError.
    """
    try:
        path = (ROOT / name.partition("\0")[0]).resolve()
        if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
            raise ValueError("which is no YAML file below this project's folder; write one that is")
        return read(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        why = "which is not there; write the path from the project's folder"
    except (OSError, RuntimeError, UnicodeError) as error:  # RuntimeError: links in a circle
        why = f"which cannot be read: {error}"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"names {name}, {why}")


def read_tree(queues: object) -> object:
    """The value of a `queues:` key: a text is the path of a file, whose value is returned.

    Raises:
        ValueError: the file cannot be read or is refused.
    """
    return named(queues, load) if isinstance(queues, str) else queues


PATH: Final = {"type": "string", "pattern": r"\.ya?ml$"}
TreeFile = Annotated[str, WithJsonSchema({**PATH, "description": "A YAML file with the tree."})]
