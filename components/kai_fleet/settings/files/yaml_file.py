"""Read YAML as Pulumi's engine does, within limits; and the files that a stack file names.

The engine passes values on as JSON: texts, numbers, true, false, null. What its reader takes for
another number, or for a date, is refused. A few lines of aliases can stand for billions of values,
so values are counted as they are built.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import WithJsonSchema

from kai_fleet import marks
from kai_fleet.settings.files.project import ROOT

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200

_TAGS: Final = {yaml.ScalarEvent: "str", yaml.MappingStartEvent: "map"}
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
    try:
        return list(_Builder(text).documents())
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


class _Builder:
    """Builds the values of a text from the parser's events, and counts them."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self.size, self.anchors = 0, dict[str, tuple[Any, int]]()  # values and their sizes

    def documents(self) -> Iterator[Any]:
        """Each document of the text."""
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors.clear()
                yield self.value(next(self.events))

    def value(self, event: Any, level: int = 0) -> Any:
        """The value that begins with an event."""
        mark, name, before = event.start_mark, event.anchor, self.size
        alias, kind = isinstance(event, yaml.AliasEvent), _TAGS.get(type(event), "seq")
        if alias and name not in self.anchors:
            raise RefusedYamlError(mark, f"has *{name}, no value above it; write it out")
        if not alias and event.tag not in (None, f"tag:yaml.org,2002:{kind}"):
            raise RefusedYamlError(mark, "has a tag (!…); drop it, and write text in quotes")
        if level > MOST_LEVELS:
            raise RefusedYamlError(mark, f"is {MOST_LEVELS} levels deep; write it flatter")
        value, size = self.anchors.pop(name, (None, 0))
        self.size += size if alias else 1
        if self.size > MOST_VALUES:
            most = f"{MOST_VALUES:,} values"
            raise RefusedYamlError(mark, f"stands for more than {most}; use no aliases")
        inside = takewhile(lambda each: not isinstance(each, yaml.CollectionEndEvent), self.events)
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif kind == "map":
            value = self._mapping(inside, level + 1)
        elif not alias:
            value = [self.value(each, level + 1) for each in inside]
        if name:
            self.anchors[name] = value, self.size - before
        return value

    def _mapping(self, inside: Iterator[Any], level: int) -> dict[str, Any]:
        whole = dict[str, Any]()
        for event in inside:
            key = self.value(event, level) if isinstance(event, yaml.ScalarEvent) else None
            shown = f"has the key {_shown(getattr(event, 'value', '?'))}"
            if not isinstance(key, str):
                cause = f"{shown}, which is no text; put it in quotes"
                raise RefusedYamlError(event.start_mark, cause)
            if key in whole:
                raise RefusedYamlError(event.start_mark, f"{shown} again, in the same mapping")
            whole[key] = self.value(next(self.events), level)
            if key == "<<" and (event.style or not isinstance(whole[key], dict)):
                why = "merges what is no mapping, or has << in quotes; write the keys out"
                raise RefusedYamlError(event.start_mark, why)
        return {**whole.pop("<<", {}), **whole}


def _scalar(event: Any) -> Any:
    text, plain = event.value, not event.style and event.tag is None
    if _CONTROL.search(text):
        raise RefusedYamlError(
            event.start_mark, f"has a control character: {_shown(text)}; take it out"
        )
    if marks.has_mark(text):
        raise RefusedYamlError(event.start_mark, marks.REFUSAL)
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


def named(name: str, read: Callable[[str], Any]) -> Any:
    """What is read from a file that a stack file names. Raises ValueError."""
    try:
        path = (ROOT / name.partition("\0")[0]).resolve()
        if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
            raise ValueError("which is no YAML file below this project's folder; write one that is")
        return read(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        why = "which is not there; write the path from the project's folder"
    except (OSError, RuntimeError, UnicodeError) as error:  # also links in a circle
        why = f"which cannot be read: {error}"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"names {name}, {why}")


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises ValueError."""
    return named(queues, load) if isinstance(queues, str) else queues


PATH: Final = {"type": "string", "pattern": r"\.ya?ml$"}
TreeFile = Annotated[str, WithJsonSchema({**PATH, "description": "A YAML file with the tree."})]
