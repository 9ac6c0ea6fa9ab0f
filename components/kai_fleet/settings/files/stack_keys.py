"""The keys of a stack file that are ours, and those that were meant to be."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Final

from kai_fleet.settings.mistakes import NAMESPACE, Mistake
from kai_fleet.wording import on_one_line

_PREFIX: Final = f"{NAMESPACE}:"
_ALIKE: Final = 0.7
# Namespaces whose keys may be called as ours are.
_PROVIDERS: Final = frozenset({"kubernetes", "command", "pulumi", "aws", "azure", "gcp"})


def own(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our keys, by what follows the prefix."""
    return {key.removeprefix(_PREFIX): config[key] for key in config if key.startswith(_PREFIX)}


def outside(document: Mapping[Any, Any], known: Iterable[str]) -> str | None:
    """What is wrong with a key of ours, or a misspelt `config`, at the top of a stack file."""
    names = frozenset(known)
    for key in map(str, document):
        if key.startswith(_PREFIX):
            return f"{on_one_line(key)} is not below config, so Pulumi does not read it; indent it"
        if (meant := key.rpartition(":")[2]) in names:
            why = "is not below config, so Pulumi does not read it"
            return f"{on_one_line(key)} {why}; write {_PREFIX}{meant} there"
        if "config" not in document and get_close_matches(key.lower(), ["config"], cutoff=0.7):
            return f"{on_one_line(key)} is not read; write config"
    return None


def misspelt(keys: Iterable[str], known: Iterable[str]) -> list[Mistake]:
    """Keys without a reader that look like ours; `known` are the names after the prefix.

    A key without a prefix is the project's for the engine, and unread by others.
    """
    names = frozenset(known)
    mistakes = []
    for key in keys:
        namespace, colon, name = key.rpartition(":")
        if namespace == NAMESPACE:
            continue
        meant = f"{_PREFIX}{on_one_line(name)}"
        if not colon:
            sentence = _without_prefix(name, names)
        elif namespace not in _PROVIDERS and (name in names or _is_like_ours(namespace)):
            sentence = f"is not read, so what it declares would be removed; write {meant}"
        else:
            continue
        mistakes.append(Mistake(on_one_line(key), sentence))
    return mistakes


def _without_prefix(key: str, names: frozenset[str]) -> str:
    last = re.split(r"[^A-Za-z]", key)[-1]
    if last in names:
        return f"has no prefix; write {_PREFIX}{last}"
    if _is_like_ours(key):
        return f"is no key; write {_PREFIX}teams and the like, each as one key below config"
    return f"has no prefix; write {_PREFIX}{on_one_line(key)}, or indent it to where it belongs"


def _is_like_ours(namespace: str) -> bool:
    bare = namespace.strip().lower().replace("_", "-").replace(" ", "-")
    return SequenceMatcher(None, bare, NAMESPACE).ratio() >= _ALIKE
