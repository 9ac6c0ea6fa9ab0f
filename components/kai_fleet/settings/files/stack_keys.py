"""The keys of a stack file that are ours, those that were meant to be, and secrets in clear."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.mistakes import NAMESPACE, Mistake, key_path
from kai_fleet.settings.sections.models import Location
from kai_fleet.wording import MASK, on_one_line

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


_SECRET_FIELDS: Final = frozenset({"kubeconfig", "huggingFaceToken"})
_SECRET_NAMES: Final = re.compile(
    r"(password|passwd|passphrase|token|secret|dockerconfigjson"
    r"|(secret|access|api|private|license|account|signing|encryption)key)$"
)
# Values that are secrets by their form, wherever they stand.
_FORMS: Final = re.compile(
    r"hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|AKIA[0-9A-Z]{16}|nvapi-[\w-]{20,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"
    r"|xox[abeoprs]-[\w-]{10,}|sk-[A-Za-z0-9]{32,}|sk-proj-[\w-]{32,}|\"auths\"\s*:"
    r"|://[^\s/:@$]*:[^\s/@$]+@"  # a URL with a password
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    re.ASCII,
)
# A flag that gives one, in one text or two, unless by a variable or a file.
_FLAG: Final = re.compile(
    r"^--?[\w-]*(password|passwd|passphrase|token|secret|api-?key)[= ](?!true$|false$)[^$@/\s-]",
    re.ASCII | re.IGNORECASE,
)


def in_clear(raw: Mapping[str, Any], encrypted: frozenset[str] = frozenset()) -> Iterator[Mistake]:
    """Every secret in clear. `encrypted` are the top-level keys that hold an encrypted value, where
    `raw` has them decrypted.
    """
    for key, value in raw.items():
        if key not in encrypted:
            yield from _below(value, (key,))


def in_clear_of_file(file: Path, keys: frozenset[str]) -> list[Mistake]:
    """Those below `keys` as a stack file writes them, beside values that are encrypted.

    The engine tells a program only that a part of a key is. None of a file that is not there, or
    that the engine alone can read.
    """
    config = yaml_file.mapping(file).get("config") if keys else None
    if not isinstance(config, dict):
        return []
    written = own({key: it for key, it in config.items() if isinstance(key, str)})
    return list(in_clear({key: it for key, it in written.items() if key in keys}))


def _below(value: Any, place: Location, name: str = "") -> Iterator[Mistake]:
    if isinstance(value, Mapping) and value.keys() == {"secure"}:
        return  # encrypted
    if isinstance(value, Mapping):
        for key, item in value.items():
            # A container's environment: {name: HF_TOKEN, value: …}.
            variable = str(value.get("name", "")) if key == "value" else ""
            yield from _below(item, (*place, str(key)), variable)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            flag = f"{value[number - 1]} " if number and isinstance(item, str) else ""
            if item != MASK and _FLAG.match(f"{flag}{item}"):
                yield _as_mistake((*place, number))
            else:
                yield from _below(item, (*place, number))
    elif not _is_account(place) and (isinstance(value, bool) or not isinstance(value, str | int)):
        return
    elif value not in ("", MASK) and _is_secret(value, place, name):
        yield _as_mistake(place)


def _as_mistake(place: Location) -> Mistake:
    return Mistake(
        key_path(place),
        "is a secret in clear; encrypt it, the command asks for the value: pulumi config set"
        f" --secret --path '{_path(place)}' --stack STACK",
    )


def _is_account(place: Location) -> bool:
    """Whether it is the password of a registry, whatever stands there."""
    return place[-1] == "password" and place[-3:-2] == ("registries",)


def _is_secret(value: Any, place: Location, name: str) -> bool:
    last = name or str(place[-1])
    # Of a control plane's store; that of SQLite is a file.
    database = last == "dataSource" and place[-2:-1] in (("store",), ("external",))
    if _is_account(place):
        return True
    known = database or last in _SECRET_FIELDS
    if isinstance(value, str) and (known or _FORMS.search(value) or _FLAG.match(value)):
        return True
    bare = last.lower().replace("_", "").replace("-", "").removeprefix(".")
    in_values = "values" in place[:-1] or "env" in place[:-1]
    if isinstance(value, int):  # 0 and 1 are switches
        return in_values and value > 1 and bare.endswith(("password", "passwd", "passphrase"))
    return in_values and _SECRET_NAMES.search(bare) is not None and not _is_reference(bare, value)


def _is_reference(key: str, value: str) -> bool:
    """Whether a chart's key names a Secret of the cluster, and holds none."""
    return key.startswith(("existing", "pull", "imagepull")) or value.lower() in ("true", "false")


def _path(place: Location) -> str:
    """As `pulumi config set --path` reads it."""
    parts = [f"{NAMESPACE}:{place[0]}"]
    for part in place[1:]:
        plain = isinstance(part, str) and re.fullmatch(r"[A-Za-z0-9_-]+", part)
        parts.append(
            f".{part}" if plain else f"[{part}]" if isinstance(part, int) else f'["{part}"]'
        )
    return "".join(parts)
