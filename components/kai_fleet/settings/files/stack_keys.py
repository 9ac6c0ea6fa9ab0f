"""The keys of a stack file that are ours, and those that were meant to be."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Final

from kai_fleet.finding import Finding
from kai_fleet.settings.mistakes import NAMESPACE, wrong_key
from kai_fleet.wording import on_one_line

_PREFIX: Final = f"{NAMESPACE}:"
_ALIKE: Final = 0.7


def own(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our keys, by what follows the prefix."""
    return {key.removeprefix(_PREFIX): config[key] for key in config if key.startswith(_PREFIX)}


def outside(document: Mapping[Any, Any], known: Iterable[str]) -> str | None:
    """What is wrong with a key of ours, or a misspelt `config`, at the top of a stack file."""
    names = frozenset(known)
    for key in map(str, document):
        if (meant := key.rpartition(":")[2]) in names or key.startswith(_PREFIX):
            why = "is not below config, so Pulumi does not read it"
            return f"{on_one_line(key)} {why}; write {_PREFIX}{on_one_line(meant)} there"
        if "config" not in document and get_close_matches(key.lower(), ["config"], cutoff=_ALIKE):
            return f"{on_one_line(key)} is not read; write config"
    return None


def misspelt(keys: Iterable[str], known: Iterable[str]) -> list[Finding]:
    """Keys without a reader that look like ours; `known` are the names after the prefix.

    A key without a prefix is the project's for the engine, and unread by others.
    """
    names, found = list(known), list[Finding]()
    for key in keys:
        namespace, colon, name = key.rpartition(":")
        last = re.split(r"[^A-Za-z]", name)[-1]
        meant = f"{_PREFIX}{on_one_line(next(iter(get_close_matches(last, names)), name))}"
        bare = namespace.lower().replace("_", "-")
        if not colon:
            fix = f"write {meant}, or indent it to where it belongs"
            found.append(wrong_key(on_one_line(key), f"has no prefix; {fix}"))
        elif namespace != NAMESPACE and SequenceMatcher(None, bare, NAMESPACE).ratio() >= _ALIKE:
            cause = "is not read, so what it declares would be removed"
            found.append(wrong_key(on_one_line(key), f"{cause}; write {meant}"))
    return found
