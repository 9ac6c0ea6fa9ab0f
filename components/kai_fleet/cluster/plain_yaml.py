"""Untrusted YAML: nothing in it grows, and no object is constructed."""

from typing import Any, Final

import yaml

_LEVELS: Final = 10
_SPARE: Final = 100  # characters: what is left out, such as a null, is a value of its own
_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class OddYamlError(ValueError):
    """It is not YAML, or has what a plain document has not. The message quotes nothing of it."""


class GrownYamlError(OddYamlError):
    """Its aliases stand for more than is written; it may be fine for a reader without limits."""


def document(text: str) -> Any:
    """The one document of a text as mappings, lists and text; every scalar is text.

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
    except OddYamlError:
        raise
    except (yaml.YAMLError, ValueError):
        raise OddYamlError("it is not YAML") from None


def typed_documents(text: str) -> list[Any]:
    """The documents of a text, with numbers and dates; those without content are left out.

    Raises OddYamlError, and GrownYamlError where aliases stand for more characters than the text
    has: what reads the result, and texts of YAML in it, then takes no longer than for a text
    without aliases.
    """
    documents, spare = [], len(text) + _SPARE
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if (spare := spare - _size(node, {})) < 0:
                raise GrownYamlError("its aliases stand for more than is written")
            documents.append(loader.construct_document(node))
    except OddYamlError:
        raise
    # A ring, a day that is none, and what a tag makes of another text.
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise OddYamlError("it is not YAML") from None
    return [content for content in documents if content is not None]


def _size(node: Any, sizes: dict[int, int]) -> int:
    """The characters that a node of a document stands for; `sizes` are of those that were counted.

    Raises RecursionError for one that contains itself.
    """
    if id(node) not in sizes:
        if isinstance(node, yaml.ScalarNode):
            parts = [len(node.value)]
        elif isinstance(node, yaml.MappingNode):
            parts = [_size(each, sizes) for pair in node.value for each in pair]
        else:
            parts = [_size(each, sizes) for each in node.value]
        sizes[id(node)] = max(1, sum(parts))
    return sizes[id(node)]


def _plain(node: Any) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.MappingNode):
        return node.value
    mapping: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise OddYamlError("it has a key that is no text")
        if key.value in mapping:
            raise OddYamlError("it has a key twice")
        mapping[key.value] = _plain(value)
    return mapping
