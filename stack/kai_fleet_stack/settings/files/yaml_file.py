"""Read YAML as Pulumi's engine does, within bounds; and read the files that a stack file names.

The engine passes values on as JSON: texts, numbers, true, false, null. A scalar that the engine's
reader takes for another number, or for a date, is refused. A few lines with aliases can stand for
billions of values, so values are counted while they are composed.

Pulumi gives all of a stack file to each plugin in one environment variable. Linux limits that to
128 KiB, which is about 1,200 queues. Files that a stack file names do not count.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import yaml
from pydantic import WithJsonSchema
from yaml.composer import Composer

from kai_fleet import marks
from kai_fleet_stack.project import ROOT

T = TypeVar("T")
MOST_BYTES = 8 * 1024 * 1024
MOST_VALUES = 1_000_000
MOST_LEVELS = 200
_MOST_SHOWN = 40  # characters of a text

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
# The tags that a text may write: they change no value that is written plainly.
_PLAIN_TAGS = (None, f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq")
_DIGITS = "0123456789"
# Scalars without quotes that are no texts: the end of a tag, a form, the first characters.
_SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", f"-+{_DIGITS}"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", f"-+.{_DIGITS}"),
    ("merge", "<<", "<"),
)
# Scalars without quotes that other readers take for another value: octal and hexadecimal numbers,
# numbers with _, infinity, numbers beyond 64 bits, dates.
_DIFFERS = re.compile(
    r"[-+]?(0(x[0-9a-f_]+|[bo]?[-+]?[0-9_]+)|(?=.*[0-9])[0-9.]*_[0-9._]*(e.*)?|\.(inf|nan)|[0-9]{17,}"
    r"|[0-9.]+e[-+]?[0-9]{3,})|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?",
    re.ASCII | re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class RefusedYamlError(ValueError):
    """The text is no YAML, or is refused.

    The message is `line L column C: CAUSE; FIX`, counted from 1; both are 1 without a mark.
    """

    def __init__(self, mark: yaml.Mark | None, problem: str) -> None:
        line = mark.line if mark else 0
        column = mark.column if mark else 0
        super().__init__(f"line {line + 1} column {column + 1}: {problem}")


def load(text: str) -> Any:
    """The value of a text with one document; None for an empty text, as for null.

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
            is no text or twice in a mapping, a `<<` in quotes or without a mapping, an alias
            without a complete value above it, a control character, a mark of Pulumi's protocol, or
            a scalar that other readers take for another value; has more than 200 levels; or stands
            for more than a million values.
    """
    if len(text) > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise RefusedYamlError(None, f"is longer than {most}; move queues to other files")
    try:
        return list(yaml.load_all(text, _Loader))
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None)
        cause = f"is no YAML: {problem or 'it has a control character, or half of one'}"
        raise RefusedYamlError(mark, f"{cause}; check the text there") from None


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping in a file; empty if that is absent, unreadable, refused, or has another value."""
    try:
        document = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


class _Extent(NamedTuple):
    """How many values a value has, itself included, and how many levels of them."""

    values: int
    levels: int


class _Loader(Composer, yaml.CSafeLoader):
    """PyYAML's safe loader on libyaml's parser, with the scalars of YAML 1.2, and bounds.

    It counts values and levels while it composes them. An alias counts as all that it stands for.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self._values = 0
        self._level = 0
        self._deepest = 0  # the highest level in the value that is being composed
        self._extents = dict[yaml.Node | None, _Extent]()  # of complete values with an anchor

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next value. An alias to a value that it is inside of is refused: it has no end.

        Raises RefusedYamlError for such an alias, one without an anchor, a tag, beyond a bound, and
        for what `compose_scalar_node` and `compose_mapping_node` refuse.
        """
        event: Any = self.peek_event()
        mark: yaml.Mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            extent = self._extents.get(self.anchors.get(event.anchor))
            if extent is None:
                cause = f"has *{event.anchor}, no value above it"
                raise RefusedYamlError(mark, f"{cause}; write it out")
            self._add(extent, mark)
            return super().compose_node(parent, index)
        if event.tag not in _PLAIN_TAGS:
            why = "has a tag (!…); drop it, and write text in quotes"
            raise RefusedYamlError(mark, why)
        self.anchors.pop(event.anchor, None)  # PyYAML would refuse the same anchor again
        before = _Extent(self._values, self._deepest)
        self._deepest = 0
        self._add(_Extent(1, 1), mark)
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        if event.anchor:
            values = self._values - before.values
            self._extents[node] = _Extent(values, self._deepest - self._level)
        self._deepest = max(self._deepest, before.levels)
        return node

    def _add(self, extent: _Extent, mark: yaml.Mark) -> None:
        """Count a value below the present level. Raises RefusedYamlError beyond a bound."""
        self._values += extent.values
        self._deepest = max(self._deepest, self._level + extent.levels)
        if self._deepest > MOST_LEVELS:
            raise RefusedYamlError(mark, f"is {MOST_LEVELS} levels deep; write it flatter")
        if self._values > MOST_VALUES:
            most = f"{MOST_VALUES:,} values"
            raise RefusedYamlError(mark, f"stands for more than {most}; use no aliases")

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        """A scalar that all readers take for the same value.

        Raises RefusedYamlError for others, and for a control character or a mark of Pulumi's
        protocol, also in quotes.
        """
        node = super().compose_scalar_node(anchor)
        text: str = node.value
        is_plain = not node.style
        if _CONTROL.search(text):
            why = f"has a control character: {_shown(text)}; take it out"
        elif marks.has_mark(text):
            why = marks.REFUSAL
        elif is_plain and _DIFFERS.fullmatch(text):
            why = (
                f"has {_shown(text)}, which is another value for other readers; write a plain"
                " number, or put it in quotes if it is text"
            )
        else:
            return node
        raise RefusedYamlError(node.start_mark, why)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping with texts as keys, each once; at `<<` it has a mapping with defaults.

        Raises RefusedYamlError for other mappings.
        """
        node = super().compose_mapping_node(anchor)
        keys = set[str]()
        for key, value in node.value:
            text = key.value if isinstance(key, yaml.ScalarNode) else "?"
            if key.tag not in (f"{_TAG}str", _MERGE):
                why = f"has the key {_shown(text)}, which is no text; put it in quotes"
            elif text in keys:
                why = f"has the key {_shown(text)} again, in the same mapping"
            elif text == "<<" and not (key.tag == _MERGE and isinstance(value, yaml.MappingNode)):
                why = "merges what is no mapping, or has << in quotes; write the keys out"
            else:
                keys.add(text)
                continue
            raise RefusedYamlError(key.start_mark, why)
        return node


_Loader.yaml_implicit_resolvers = {}  # without those of YAML 1.1
for _kind, _form, _first in _SCALARS:
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(rf"({_form})\Z"), list(_first))
_Loader.add_constructor(_MERGE, lambda _, node: node.value)  # a value that reads <<


def _shown(text: str) -> str:
    """The text for a message: escaped, and at most 40 characters before that."""
    if len(text) > _MOST_SHOWN:
        text = f"{text[: _MOST_SHOWN - 3]}…"
    return ascii(text)


def read_named_file(name: str, read: Callable[[str], T]) -> T:
    """The result of `read` for the text of a file that a stack file names.

    Args:
        name: path from the project's folder.
        read: gets the whole text, and raises ValueError to refuse it.

    Raises:
        ValueError: the file, after links, is not below the project's folder or not called .yaml or
            .yml; it is absent or cannot be read; or `read` raises ValueError. The message is a
            predicate: `names NAME, ` and why.
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

    That is None for an empty file. Other values are unchanged, and not validated.

    Raises:
        ValueError: the file cannot be read or is refused.
    """
    return read_named_file(queues, load) if isinstance(queues, str) else queues


PATH = {"type": "string", "pattern": r"\.ya?ml$"}
TreeFile = Annotated[str, WithJsonSchema({**PATH, "description": "A YAML file with the tree."})]
