"""Editing a stack file's text: keys set, added or taken out, and every other byte as it was.

ruamel's round trip rewrites spaces between braces, aligned values and comments, and a second depth
of indentation. So ruamel only says where things are, and the text is cut there.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kai_fleet.settings.files import yaml_file
from kai_fleet_cli.errors import UserError

Keys = Sequence[str]
GONE: Final = object()  # in place of a value: the key is taken out
_BYTE_ORDER_MARK: Final = "\ufeff"


def changed(text: str, values: Mapping[tuple[str, ...], Any], file: str) -> str:
    """The text of a file with these values at their places, none of which is below another.

    A scalar is replaced, an absent key is added, and so are the mappings above it that are absent
    or empty. A key that is to be `GONE` has to be there. Raises UserError where a place is written
    in a way that is not edited safely.
    """
    # libyaml does not count a byte order mark where it says where things are.
    body = text.removeprefix(_BYTE_ORDER_MARK)
    mark, text = text[: len(text) - len(body)], body
    of_windows = 0 < text.count("\r\n") == text.count("\n")
    if of_windows:
        text = text.replace("\r\n", "\n")
    keys: Keys = next(iter(values), ())
    try:
        wanted = _document(text)
        for keys, value in values.items():
            here = wanted
            for key in keys[:-1]:
                if not isinstance(here.get(key), dict):
                    here[key] = {}
                here = here[key]
            if value is GONE:
                del here[keys[-1]]
                text = _cut(text, keys)
            else:
                here[keys[-1]] = value
                text = _set(text, keys, value)
        # Anchors and odd layouts show here, and so does another order.
        if repr(_document(text)) != repr(wanted):
            raise ValueError("the edit says something else")
    except (YAMLError, ValueError, RecursionError) as why:
        place = ".".join(keys).removeprefix("config.")
        raise UserError(
            f"{file}: {place} is written in a way that is not edited safely (an anchor, or an odd"
            " layout); edit it by hand"
        ) from why
    return mark + (text.replace("\n", "\r\n") if of_windows else text)


def block(value: Mapping[str, Any], indent: int = 0) -> str:
    """A mapping in lines; what holds no further mapping stands in braces."""
    lines: list[str] = []
    for key, item in value.items():
        start = f"{' ' * indent}{_inline(key)}:"
        if isinstance(item, Mapping) and any(isinstance(v, Mapping) for v in item.values()):
            lines += [f"{start}\n", block(item, indent + 2)]
        else:
            lines.append(f"{start} {_inline(item)}\n")
    return "".join(lines)


def unshared(value: Any) -> Any:
    """A loaded document in which no two places share a part: an edit of one leaves the other."""
    if isinstance(value, dict):
        return {key: unshared(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unshared(item) for item in value]
    return value


def _document(text: str) -> dict[Any, Any]:
    document = unshared(_loaded(text)) or {}
    if not isinstance(document, dict):
        raise ValueError("no mapping")
    return document


# Parsing is nearly all of an edit's time, and the text that one edit checks is what the next reads.
@lru_cache(maxsize=4)
def _loaded(text: str) -> Any:
    return yaml_file.load(text)


@lru_cache(maxsize=4)
def _composed(text: str) -> Any:
    """Where things are: by libyaml, in a sixth of the time, as far as it takes the text."""
    try:
        return YAML(typ="safe").compose(text)
    except (YAMLError, ValueError):
        return YAML(typ="rt", pure=True).compose(text)


def _set(text: str, keys: Keys, value: Any) -> str:
    node = _composed(text)
    if node is None:
        return _with_lines(text, len(text), _nested(keys, value), 0)
    for depth, key in enumerate(keys):
        entry = _entry(node, key)
        below = _nested(keys[depth + 1 :], value)
        if entry is None:
            return _add(text, node, key, below)
        if depth == len(keys) - 1 or _is_empty(entry[1]):
            return _replace(text, entry, below, in_braces=bool(node.flow_style))
        node = entry[1]
    return text


def _nested(keys: Keys, value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _entry(node: Any, key: str) -> tuple[ScalarNode, Any] | None:
    """A mapping's node of that key, and its value's."""
    if not isinstance(node, MappingNode):
        raise ValueError("no mapping")
    every = ((name, value) for name, value in node.value if isinstance(name, ScalarNode))
    return next((entry for entry in every if entry[0].value == key), None)


def _is_empty(node: Node) -> bool:
    if isinstance(node, ScalarNode):
        return not node.style and node.value in ("", "~", "null")
    return isinstance(node, MappingNode) and not node.value


def _add(text: str, node: MappingNode, key: str, value: Any) -> str:
    """One more entry at the end of a mapping."""
    if not node.flow_style:
        last = _end(text, *node.value[-1])
        return _with_lines(text, last, {key: value}, node.value[0][0].start_mark.column)
    end = _back_over_blanks(text, node.end_mark.index - 1)
    comma = ", " if node.value and text[end - 1] != "," else " " if node.value else ""
    return f"{text[:end]}{comma}{_inline(key)}: {_inline(value)}{text[end:]}"


def _replace(text: str, entry: tuple[ScalarNode, Node], value: Any, *, in_braces: bool) -> str:
    """Another value for a key that is there."""
    name, old = entry
    start, end = old.start_mark.index, old.end_mark.index
    if start == end:  # nothing is written
        start = end = _end(text, name, old)
    if in_braces or not isinstance(value, Mapping) or not value:
        space = " " if text[start - 1] == ":" else ""
        return text[:start] + space + _inline(value, getattr(old, "style", None)) + text[end:]
    # A mapping below a key that had none: the key's line keeps its comment.
    start = _back_over_blanks(text, start)
    return _with_lines(text[:start] + text[end:], start, value, name.start_mark.column + 2)


def _with_lines(text: str, index: int, value: Mapping[str, Any], indent: int) -> str:
    """The text with a mapping in lines of its own, below the line of `index`."""
    at = _line_end(text, index)
    line_end = "" if text[:at].endswith("\n") or not at else "\n"
    return text[:at] + line_end + block(value, indent) + text[at:]


def _cut(text: str, keys: Keys) -> str:
    node, above = _composed(text), None
    for key in keys[:-1]:
        above = _entry(node, key)
        node = above[1] if above else None
    entry = _entry(node, keys[-1])
    if entry is None:
        raise ValueError("merged in from an anchor")
    if node.flow_style:
        # With what is between it and the next one; the last one with what is before it.
        at, last = [name for name, _ in node.value].index(entry[0]), node.value[-1][0] is entry[0]
        start = _end(text, *node.value[at - 1]) if last and at else entry[0].start_mark.index
        end = _end(text, *entry) if last else node.value[at + 1][0].start_mark.index
        return text[:start] + text[end:]
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    rest = text[:start] + text[_line_end(text, _end(text, *entry)) :]
    if len(node.value) > 1 or above is None:
        return rest
    at = text.index(":", above[0].end_mark.index) + 1
    return f"{rest[:at]} {{}}{rest[at:]}"


def _end(text: str, name: Node, value: Node) -> int:
    """Where the text of an entry ends; a block's own end mark is at whatever comes next."""
    if value.start_mark.index == value.end_mark.index and isinstance(value, ScalarNode):
        return text.index(":", name.end_mark.index) + 1
    if isinstance(value, MappingNode) and not value.flow_style:
        return _end(text, *value.value[-1])
    if isinstance(value, SequenceNode) and not value.flow_style:
        return _end(text, name, value.value[-1])
    return _back_over_blanks(text, value.end_mark.index)


def _back_over_blanks(text: str, index: int) -> int:
    return len(text[:index].rstrip(" \t\r\n"))


def _line_end(text: str, index: int) -> int:
    """The beginning of the next line."""
    return text.find("\n", index) + 1 or len(text)


def _inline(value: Any, quote: str | None = None) -> str:
    """A value on one line; text keeps the quotes that the value before it had."""
    text = yaml.safe_dump(
        value,
        default_style=quote if quote in ("'", '"') and isinstance(value, str) else None,
        default_flow_style=True,
        allow_unicode=True,
        sort_keys=False,
        width=10**6,
    )
    return text.strip().removesuffix("...").strip()
