"""Untrusted YAML as mappings, lists and text: nothing in it grows or is constructed."""

from typing import Any, Final

import yaml

_LEVELS: Final = 10
_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class OddYamlError(ValueError):
    """It is not YAML, or has what a plain document has not. The message quotes nothing of it."""


def document(text: str) -> Any:
    """The one document of a text; every scalar is text.

    Raises OddYamlError, for aliases, tags, keys that are there twice and many levels as well.
    """
    open_: list[tuple[Any, str | None]] = []  # collections, and the key that waits for its value
    top: list[Any] = []
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise OddYamlError("it has an alias")
            if getattr(event, "tag", None):
                raise OddYamlError("it has a tag")
            if isinstance(event, yaml.ScalarEvent):
                _add(open_, top, event.value)
            elif isinstance(event, yaml.CollectionStartEvent):
                made: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                _add(open_, top, made)
                open_.append((made, None))
                if len(open_) > _LEVELS:
                    raise OddYamlError("it has too many levels")
            elif isinstance(event, yaml.CollectionEndEvent):
                open_.pop()
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, OddYamlError):
            raise
        raise OddYamlError("it is not YAML") from None
    if len(top) != 1:
        raise OddYamlError("it is not one document")
    return top[0]


def _add(open_: list[tuple[Any, str | None]], top: list[Any], value: Any) -> None:
    if not open_:
        top.append(value)
        return
    into, key = open_[-1]
    if isinstance(into, list):
        into.append(value)
    elif key is not None:
        into[key] = value
        open_[-1] = (into, None)
    elif not isinstance(value, str):
        raise OddYamlError("it has a key that is no text")
    elif value in into:
        raise OddYamlError("it has a key twice")
    else:
        open_[-1] = (into, value)
