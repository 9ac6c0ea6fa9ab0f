"""Editing a stack file's text: one key set, added or taken out, and every other byte as it was.

YAML that is read and written again loses a person's spacing and quotes. So ruamel.yaml only says
where things are, and the text is cut there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kai_fleet.settings.files import yaml_file
from kai_fleet_cli.stack_file import yaml_text

Keys = Sequence[str]
_BYTE_ORDER_MARK: Final = "\ufeff"


class NotEditable(Exception):  # noqa: N818 - its message is all a user sees
    """The place is written in a way that this does not edit; the message says what to do."""


def with_values(text: str, values: Mapping[tuple[str, ...], Any]) -> str:
    """The text with these values at their places, none of which is below another.

    A scalar is replaced, an absent key is added, and so are the mappings above it that are absent
    or empty. Raises NotEditable.
    """
    keys: Keys = next(iter(values), ())
    wanted = _data(text, keys)
    for keys, value in values.items():
        here = wanted
        for key in keys[:-1]:
            if not isinstance(here.get(key), dict):
                here[key] = {}
            here = here[key]
        here[keys[-1]] = value
        text = _set(text, keys, value)
    return _checked(text, wanted, keys)


def without(text: str, keys: Keys) -> str:
    """The text without the key at that place and all below it. Raises NotEditable, KeyError."""
    wanted = _data(text, keys)
    here = wanted
    for key in keys[:-1]:
        here = here[key]
    del here[keys[-1]]
    return _checked(_cut(text, keys), wanted, keys)


def _data(text: str, keys: Keys) -> Any:
    """What the file says, without shared parts: an edit of one must not change another."""
    try:
        found = yaml_text.plain(_loaded(text)) or {}
    except (YAMLError, ValueError, RecursionError) as why:
        raise _refusal(keys) from why
    if not isinstance(found, dict):
        raise _refusal(keys)
    return found


# Parsing is nearly all of an edit's time, and the text that one edit checks is what the next reads.
@lru_cache(maxsize=4)
def _loaded(text: str) -> Any:
    return yaml_file.load(text)


@lru_cache(maxsize=4)
def _root(text: str) -> Node | None:
    """Where things are: by libyaml, in a sixth of the time, as far as it takes the text."""
    found: Node | None
    try:  # libyaml does not count a byte order mark
        found = YAML(typ="safe", pure=text.startswith(_BYTE_ORDER_MARK)).compose(text)
    except (YAMLError, ValueError):
        found = YAML(typ="rt", pure=True).compose(text)
    return found


def _checked(text: str, wanted: Any, keys: Keys) -> str:
    """`text`, if it says exactly what was wanted; anchors and odd layouts are found here."""
    try:
        found = yaml_text.plain(_loaded(text)) or {}
    except (YAMLError, ValueError, RecursionError) as why:
        raise _refusal(keys) from why
    if found != wanted or _order(found) != _order(wanted):
        raise _refusal(keys)
    return text


def _order(value: Any) -> Any:
    return [(key, _order(item)) for key, item in value.items()] if isinstance(value, dict) else None


def _refusal(keys: Keys) -> NotEditable:
    place = ".".join(keys[1:] if keys[:1] == ["config"] else keys).removeprefix("config.")
    return NotEditable(
        f"{place} is written in a way that is not edited safely (an anchor, or an odd layout);"
        " edit it by hand"
    )


def _set(text: str, keys: Keys, value: Any) -> str:
    root = _composed(text, keys)
    if root is None:
        whole: Any = value
        for key in reversed(keys):
            whole = {key: whole}
        return _with_line_end(text) + yaml_text.block(whole, 0, yaml_text.newline(text))
    node: Node = root
    for depth, key in enumerate(keys):
        if not isinstance(node, MappingNode):
            raise _refusal(keys)
        entry = _entry(node, key)
        rest: Any = value
        for below in reversed(keys[depth + 1 :]):
            rest = {below: rest}
        if entry is None:
            return _add(text, node, key, rest)
        name, found = entry
        if depth == len(keys) - 1 or _is_null(found) or _is_empty(found):
            return _replace(text, name, found, rest, flow=bool(node.flow_style))
        node = found
    return text


def _composed(text: str, keys: Keys) -> MappingNode | None:
    try:
        root = _root(text)
    except (YAMLError, ValueError, RecursionError) as why:
        raise _refusal(keys) from why
    if root is None:
        return None
    if not isinstance(root, MappingNode):
        raise _refusal(keys)
    return root


def _entry(node: MappingNode, key: str) -> tuple[ScalarNode, Node] | None:
    for name, value in node.value:
        if isinstance(name, ScalarNode) and name.value == key:
            return name, value
    return None


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and not node.style and node.value in ("", "~", "null")


def _is_empty(node: Node) -> bool:
    return isinstance(node, MappingNode) and not node.value


def _is_unwritten(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index


def _add(text: str, node: MappingNode, key: str, value: Any) -> str:
    """One more entry at the end of a mapping."""
    if node.flow_style:
        last = _back_over_blanks(text, node.end_mark.index - 1)
        comma = ", " if node.value and text[last - 1] != "," else " " if node.value else ""
        return text[:last] + comma + yaml_text.flow_entry(key, value) + text[last:]
    column = node.value[0][0].start_mark.column
    end = _line_end(text, _end(text, *node.value[-1]))
    lines = yaml_text.block({key: value}, column, yaml_text.newline(text))
    return _with_line_end(text[:end]) + lines + text[end:]


def _replace(text: str, name: ScalarNode, found: Node, value: Any, *, flow: bool) -> str:
    """Another value for a key that is there."""
    if _is_unwritten(found):
        start = end = text.index(":", name.end_mark.index) + 1
    else:
        start, end = found.start_mark.index, found.end_mark.index
    if flow or not isinstance(value, Mapping) or not value:
        space = " " if text[start - 1] == ":" else ""
        quote = getattr(found, "style", None)
        return text[:start] + space + yaml_text.inline(value, quote) + text[end:]
    # A mapping below a key that had none: the key's line keeps its comment.
    bare = text[: _back_over_blanks(text, start)] + text[end:]
    at = _line_end(bare, _back_over_blanks(text, start))
    lines = yaml_text.block(value, name.start_mark.column + 2, yaml_text.newline(text))
    return _with_line_end(bare[:at]) + lines + bare[at:]


def _cut(text: str, keys: Keys) -> str:
    node: Node | None = _composed(text, keys)
    above: tuple[ScalarNode, Node] | None = None
    for key in keys[:-1]:
        above = _entry(node, key) if isinstance(node, MappingNode) else None
        if above is None:
            raise _refusal(keys)
        node = above[1]
    if not isinstance(node, MappingNode) or (entry := _entry(node, keys[-1])) is None:
        raise _refusal(keys)
    position = [name for name, _ in node.value].index(entry[0])
    if node.flow_style:
        return _cut_flow(text, node, position)
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    end = _line_end(text, _end(text, *entry))
    rest = text[:start] + text[end:]
    if len(node.value) == 1 and above is not None:
        at = text.index(":", above[0].end_mark.index) + 1
        rest = rest[:at] + " {}" + rest[at:]
    return rest


def _cut_flow(text: str, node: MappingNode, position: int) -> str:
    entries = node.value
    start = entries[position][0].start_mark.index
    if position + 1 < len(entries):
        return text[:start] + text[entries[position + 1][0].start_mark.index :]
    if position:
        start = _end(text, *entries[position - 1])
    return text[:start] + text[_end(text, *entries[position]) :]


def _end(text: str, name: Node, node: Node) -> int:
    """Where the text of an entry ends; a block's own end mark is at whatever comes next."""
    if _is_unwritten(node):
        return text.index(":", name.end_mark.index) + 1
    if isinstance(node, MappingNode) and not node.flow_style:
        return _end(text, *node.value[-1])
    if isinstance(node, SequenceNode) and not node.flow_style:
        return _end(text, name, node.value[-1])
    return _back_over_blanks(text, node.end_mark.index)


def _back_over_blanks(text: str, index: int) -> int:
    return len(text[:index].rstrip(" \t\r\n"))


def _line_end(text: str, index: int) -> int:
    """The beginning of the next line."""
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def _with_line_end(text: str) -> str:
    return text if not text or text.endswith("\n") else text + yaml_text.newline(text)
