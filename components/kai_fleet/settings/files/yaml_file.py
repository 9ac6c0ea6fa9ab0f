"""Read YAML as Pulumi's engine does, within limits.

The engine passes values on as JSON: texts, numbers, true, false, null. What its reader takes for
another number, or for a date, is refused. A few lines of aliases can stand for billions of values,
so the parser's events are counted before anything is built.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, MappingStartEvent, NodeEvent, ScalarEvent

T = TypeVar("T")
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200

_YAML: Final = "tag:yaml.org,2002:"
_TAGS: Final = (None, f"{_YAML}str", f"{_YAML}map", f"{_YAML}seq")
_PLAIN: Final = {  # what is no text without quotes
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII),
    "float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)(e[-+]?[0-9]+)?", re.ASCII | re.I),
    "merge": re.compile(r"<<"),
}
# Octal, hexadecimal, _ in numbers, infinity, numbers beyond 64 bits; dates.
_DIFFERS: Final = re.compile(
    r"[-+]?(0(x[0-9a-f_]+|[bo]?[-+]?[0-9_]+)|(?=.*[0-9])[0-9.]*_[0-9._]*(e.*)?|\.(inf|nan)|[0-9]{17,}"
    r"|[0-9.]+e[-+]?[0-9]{3,})|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?",
    re.ASCII | re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_CONFLICT: Final = re.compile(r"^\s*([<>=|])\1{6}(?= |$)", re.MULTILINE)


class RefusedYamlError(ValueError):
    """The text is no YAML, or not read; the message begins with its place."""


class _Reader(yaml.CSafeLoader):
    """Knows JSON's values only."""

    yaml_implicit_resolvers: dict[Any, Any] = {}


for _name, _pattern in _PLAIN.items():
    _whole = re.compile(rf"({_pattern.pattern})\Z", _pattern.flags)
    _Reader.add_implicit_resolver(f"{_YAML}{_name}", _whole, None)


def place(line: int, column: int) -> str:
    """How messages begin; both count from 1."""
    return f"line {line} column {column}:"


def place_of(text: str, index: int) -> str:
    """The place of one character of a text."""
    return place(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def load(text: str) -> Any:
    """Return what the text holds. Raises RefusedYamlError."""
    return _read(text, lambda: yaml.load(text, Loader=_Reader))


def load_all(text: str) -> list[Any]:
    """Return each document of the text, with the limits of `load` for all of them together."""
    return _read(text, lambda: list(yaml.load_all(text, Loader=_Reader)))


def _read(text: str, build: Callable[[], T]) -> T:
    if len(text) > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise RefusedYamlError(f"{place(1, 1)} is longer than {most}; move queues to other files")
    try:
        _check(text)
        return build()
    except yaml.MarkedYAMLError as error:
        raise RefusedYamlError(_sentence(text, error)) from None
    except yaml.reader.ReaderError as error:
        where = place_of(text, int(error.position))
        raise RefusedYamlError(f"{where} has a control character; take it out") from None
    except UnicodeError:
        raise RefusedYamlError(f"{place(1, 1)} has half of a character; save it as UTF-8") from None


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping that a file is; empty for one that is not there, is none, or cannot be read."""
    try:
        document = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Open:
    """A mapping or a list that the parser is in; first the document."""

    def __init__(self, anchor: str | None = None, mapping: bool = False) -> None:
        self.anchor, self.mapping = anchor, mapping
        self.size, self.keys, self.at_key = 1, set[str](), False


def _check(text: str) -> None:
    """Refuse what is too large, odd, or read differently by the engine."""
    open_, sizes = [_Open()], dict[str | None, int]()  # sizes of what has an anchor
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, CollectionEndEvent):
            done = open_.pop()
            open_[-1].size += done.size
            sizes[done.anchor] = done.size
        elif isinstance(event, NodeEvent) and (wrong := _wrong(event, open_, sizes)):
            raise RefusedYamlError(f"{_place(event.start_mark)} {wrong}")


def _wrong(event: Any, open_: list[_Open], sizes: dict[str | None, int]) -> str | None:
    """What is wrong with a value, which is counted in the innermost open one."""
    inside = open_[-1]
    inside.at_key = inside.mapping and not inside.at_key
    if isinstance(event, AliasEvent):
        if any(each.anchor == event.anchor for each in open_):
            return f"contains itself (*{event.anchor}); write it out"
        inside.size += sizes.get(event.anchor, 1)
    elif isinstance(event, ScalarEvent):
        inside.size, sizes[event.anchor] = inside.size + 1, 1
    else:
        open_.append(_Open(event.anchor, isinstance(event, MappingStartEvent)))
    if inside.size > MOST_VALUES:
        return f"stands for more than {MOST_VALUES:,} values; use no aliases"
    if len(open_) > MOST_LEVELS:
        return f"is {MOST_LEVELS} levels deep; write it flatter"
    if getattr(event, "tag", None) not in _TAGS:
        return "has a tag (!…); drop it, and write text in quotes"
    if not isinstance(event, ScalarEvent):
        return "has a key that is no text; write a name" if inside.at_key else None
    return _wrong_text(event.value, not event.style, inside if inside.at_key else None)


def _wrong_text(text: str, plain: bool, keys_of: _Open | None) -> str | None:
    """What is wrong with a text, `plain` where it has no quotes, and a key of `keys_of`."""
    shown = ascii(text if len(text) <= 40 else f"{text[:37]}…")
    if _CONTROL.search(text):
        return f"has a control character: {shown}; take it out"
    if plain and _DIFFERS.fullmatch(text):
        return (
            f"has {shown}, which is another value for other readers; write a plain number, or put"
            " it in quotes if it is text"
        )
    if keys_of is None or (plain and text == "<<"):
        return None
    if plain and any(pattern.fullmatch(text) for pattern in _PLAIN.values()):
        return f"has the key {shown}, which is no text; put it in quotes"
    if text in keys_of.keys:
        return f"has the key {shown} again, in the same mapping"
    keys_of.keys.add(text)
    return None


def _place(mark: Any) -> str:
    return place(mark.line + 1, mark.column + 1) if mark else place(1, 1)


def _sentence(text: str, error: yaml.MarkedYAMLError) -> str:
    """Where a text is no YAML, in the parser's words."""
    if conflict := _CONFLICT.search(text):
        where = place_of(text, conflict.start(1))
        return f"{where} has a merge conflict ({conflict[0].strip()}); resolve it"
    where = _place(error.problem_mark or error.context_mark)
    return f"{where} is no YAML: {error.problem}; check indentation, quotes and brackets there"
