"""The flags in control_plane_flags.yaml, which a stack may set, and how flags are spelled."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import yaml

from kubectl_fleet.kube.system_names import may_name_system

_READ: Final[Mapping[str, Any]] = yaml.safe_load(
    (files(__package__) / "control_plane_flags.yaml").read_text(encoding="utf-8")
)
_REASONS: Final = tuple((re.compile(flag), reason) for flag, reason in _READ["reasons"].items())


def _pattern(flags: Iterable[str | list[str]]) -> str:
    """One pattern for all; a list in the list is another that it takes over."""
    every = (flag for each in flags for flag in ([each] if isinstance(each, str) else each))
    return "|".join(every)


# The key of each list of flags, what reads it, and the flags that it may have.
FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    key: (each["program"], _pattern(each["flags"])) for key, each in _READ["lists"].items()
}


@dataclass(frozen=True)
class Flag:
    """One flag as its program reads it: `authorization-mode`, `AlwaysAllow`."""

    name: str
    value: str


def flags(arguments: object) -> Iterator[Flag]:
    """The flags in a list of arguments, in every spelling that a program may take for one.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    What belongs to no flag is a flag without a name.
    """
    tokens = [token for item in _items(arguments) for token in _tokens(item)]
    name: str | None = None
    for token in tokens:
        if token.startswith("-"):
            if name is not None:
                yield Flag(name, "")
            before, equals, value = token.lstrip("-").partition("=")
            name = before.replace("_", "-").lower()
            if equals or not name:
                yield Flag(name, value)
                name = None
        else:
            yield Flag(name or "", token)
            name = None
    if name is not None:
        yield Flag(name, "")


def refusal(flag: Flag, allowed: str) -> str | None:
    """Why a flag is refused; None where it may be set."""
    if re.fullmatch(allowed, flag.name):
        return _value(flag)
    reason = next((why for pattern, why in _REASONS if pattern.fullmatch(flag.name)), None)
    return reason or "is none of those that are known to open nothing"


def unprefixed_groups(arguments: Mapping[str, str]) -> bool:
    """Whether groups of an OIDC provider could be system:masters: it is their prefix that bars it.

    `arguments` are the API server's flags with their values.
    """
    return "oidc-groups-claim" in arguments and not arguments.get("oidc-groups-prefix")


def _value(flag: Flag) -> str | None:
    prefix = flag.name in ("oidc-username-prefix", "oidc-groups-prefix")
    if prefix and may_name_system(flag.value):
        return "lets a provider of identities name Kubernetes' own accounts; write oidc:"
    if flag.name == "tls-min-version" and flag.value not in ("VersionTLS12", "VersionTLS13"):
        return "allows encryption that is broken; write VersionTLS12 or VersionTLS13"
    return None


def _items(arguments: object) -> Iterator[str]:
    if isinstance(arguments, list | tuple):
        for item in arguments:
            yield item if isinstance(item, str) else repr(item)
    elif arguments is not None:
        yield arguments if isinstance(arguments, str) else repr(arguments)


def _tokens(item: str) -> list[str]:
    """The words of an item; a value with spaces in it stays with its flag."""
    words = [word.strip("\"'") for word in item.split()]
    tokens: list[str] = []
    for n, word in enumerate(words):
        if n == 0 or word.startswith("-") or (n == 1 and "=" not in tokens[0]):
            tokens.append(word)
    return tokens
