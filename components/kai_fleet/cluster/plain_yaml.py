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
    level = documents = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise OddYamlError("it has an alias")
            if getattr(event, "tag", None):
                raise OddYamlError("it has a tag")
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if level > _LEVELS:
                raise OddYamlError("it has too many levels")
            documents += isinstance(event, yaml.DocumentStartEvent)
        if documents != 1:
            raise OddYamlError("it is not one document")
        return _plain(yaml.compose(text, Loader=_LOADER))
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, OddYamlError):
            raise
        raise OddYamlError("it is not YAML") from None


def _plain(node: Any) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    found: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise OddYamlError("it has a key that is no text")
        if key.value in found:
            raise OddYamlError("it has a key twice")
        found[key.value] = _plain(value)
    return found
