"""Ciphertexts of a stack file: the keys that may have one, and copies of one to another key.

The engine decrypts a ciphertext at any key. Somebody without the key could copy one to a place
where its value is shown to them. Each encryption has a new nonce, so equal ciphertexts are copies.
The stack's outputs keep a digest of each ciphertext and its key; a digest tells nothing about the
secret.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr

from kai_fleet.wording import MASK, listed, on_one_line
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.key_paths import NAMESPACE, Location, key_path
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.mistakes import own_keys, wrong_key
from kai_fleet_stack.settings.sections.models import SET_SECRET, Strict, fields_beside
from kai_fleet_stack.settings.team_stack import TeamStack

# Output of a stack with the digests of the ciphertexts that each key has had, the newest first.
OUTPUT = "ciphertexts"
DigestsByKey = Mapping[str, Sequence[str]]
_MOST_KNOWN = 100  # digests of a key
# Keys of a stack file with the stack's encryption key. Two stacks with the same encryption key can
# decrypt each other's secrets.
_STACK_KEYS = ("encryptionsalt", "encryptedkey")
# Keys that may be encrypted.
_KEYS = ("dataSource", "kubeconfig", "password")
# Keys that `pulumi config set --path` reads without quotes.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_MAY_NOT_BE_ENCRYPTED = (
    f"is encrypted, at a key for no secret, as {listed(_KEYS, 'and')} are: what is decrypted would"
    " be read there; write it in clear in the stack's own file, or take it from a Secret of the"
    " cluster"
)


@dataclass(frozen=True)
class Ciphertext:
    """A ciphertext in a stack file.

    `file` is the file's name. `location` is the path to its key, from `NAMESPACE:NAME` on, or only
    the name of the stack's encryption key. `content` are the bytes that the engine would decrypt,
    of each part between colons, or the text if a part is no base64.
    """

    file: str
    location: Location
    content: tuple[bytes, ...] | str

    @property
    def path(self) -> str:
        """Its key path, for a message."""
        return ".".join(on_one_line(str(part)) for part in self.location)

    @property
    def allowed(self) -> bool:
        """Whether its key may be encrypted; keys of other namespaces, or of none, always may.

        True for the stack's encryption key.
        """
        namespace, colon, name = str(self.location[0]).partition(":")
        if namespace != NAMESPACE or not colon:
            return True
        return takes_secret((name, *self.location[1:]))

    @property
    def key(self) -> str:
        """Its key path by `_path_of`: unique in the file, unless a top-level key has a dot."""
        return _path_of(self.location)

    @property
    def digest(self) -> str:
        """A digest for the stack's outputs, from which nobody can compute the ciphertext.

        It is that of the content alone, so copies have the same one.
        """
        return sha256(repr(self.content).encode()).hexdigest()[:32]

    def mistakes_of_copy(self, others: Iterable["Ciphertext"], cause: str) -> Iterator[Finding]:
        """The mistake that the first equal ciphertext at another place is the same.

        Nothing where none is equal, and where the key may not be encrypted: `mistakes` reports it.

        Args:
            others: may have this one, too.
            cause: what is wrong; the path of the other key follows, and its file if it is another.
        """
        for other in others:
            if other == self or other.content != self.content:
                continue
            path = other.path if other.file == self.file else f"{other.path} in {other.file}"
            yield from self.mistakes_at_key(f"{cause} {path}")
            return

    def mistakes_at_key(self, cause: str) -> Iterator[Finding]:
        """The mistake at its key, with its fix; nothing where the key may not be encrypted.

        `mistakes` reports those. `cause` is what is wrong; why that matters follows.
        """
        stack = self.file.removeprefix("Pulumi.").removesuffix(".yaml")
        if self.location[0] in _STACK_KEYS:  # the stack's encryption key, and not a secret
            cause = f"{cause}, and what is encrypted for one stack is for that one"
            fix = "take it out with all that is encrypted, and set those secrets again"
            yield wrong_key(self.path, f"{cause}; {fix}: pulumi makes another")
        elif self.allowed:
            cause = f"{cause}, and a secret is for one purpose and one team"
            yield wrong_key(self.path, f"{cause}; {_encrypt('it anew', self.location, stack)}")


def ciphertexts_of(file: Path) -> list[Ciphertext]:
    """All ciphertexts of a stack file, of any namespace, and then its encryption key.

    Empty if it has no ciphertexts, is absent, cannot be read or is refused.
    """
    document = yaml_file.mapping(file)
    ciphertexts = [
        Ciphertext(file.name, location, _content(value["secure"]))
        for location, value in _leaves(document.get("config"))
        if isinstance(value, Mapping)
    ]
    if not ciphertexts:
        return []
    for key in _STACK_KEYS:
        if key in document:
            ciphertexts.append(Ciphertext(file.name, (key,), _content(str(document[key]))))
    return ciphertexts


def ciphertexts_in_folder(folder: Path) -> list[Ciphertext]:
    """What `ciphertexts_of` returns for each stack file of a folder, in the order of their names.

    So the encryption key of a file without ciphertexts is left out, as is all of a file that cannot
    be read or is refused. `Pulumi.yaml` is no stack file.
    """
    return list(chain.from_iterable(map(ciphertexts_of, sorted(folder.glob("Pulumi.*.yaml")))))


def _leaves(value: Any, location: Location = ()) -> Iterator[tuple[Location, Any]]:
    """The path and value of each scalar, and of each `{secure: …}`.

    An empty mapping or list has none. `location` is the path to `value`.
    """
    if isinstance(value, Mapping) and not _is_ciphertext(value):
        for key, inner in value.items():
            yield from _leaves(inner, (*location, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _leaves(element, (*location, index))
    else:
        yield location, value


def _is_ciphertext(value: Mapping[str, object]) -> bool:
    """Whether the engine decrypts it: it has only the key `secure`, with a text."""
    return len(value) == 1 and isinstance(value.get("secure"), str)


def _content(ciphertext: str) -> tuple[bytes, ...] | str:
    """The bytes that the engine would decrypt, because several base64 texts stand for the same.

    They are those of each part between colons; if a part is no base64 it is the text.
    """
    try:
        return tuple(b64decode(f"{part}==") for part in ciphertext.split(":"))
    except ValueError:
        return ciphertext


def copied_ciphertexts(file: Path) -> Iterator[Finding]:
    """Ciphertexts of a stack file, and its encryption key, that another place has too.

    That is another key of this file, or any key of another stack file in its folder. A file without
    ciphertexts counts as one without an encryption key.

    All ciphertexts of Pulumi.yaml in that folder are mistakes as well, and come first. Ciphertexts
    at keys that may not be encrypted are left out, also as the other place: `mistakes` reports
    them.
    """
    for secret in ciphertexts_of(file.parent / "Pulumi.yaml"):
        cause = "is encrypted in Pulumi.yaml, which is of every stack"
        yield wrong_key(secret.path, f"{cause}; write it in the stack's file")
    in_file = ciphertexts_of(file)
    if not in_file:
        return
    in_folder = ciphertexts_in_folder(file.parent)
    originals = [secret for secret in (*in_file, *in_folder) if secret.allowed]
    for secret in in_file:
        yield from secret.mistakes_of_copy(originals, "is the same ciphertext as")


def moved_ciphertexts(before: Iterable[Ciphertext], now: Iterable[Ciphertext]) -> Iterator[Finding]:
    """Ciphertexts of `now` that `before` has at another key or in another file, not at this one.

    Those at keys that may not be encrypted are left out: `mistakes` reports them.
    """
    earlier = list(before)
    for secret in now:
        if secret not in earlier:
            yield from secret.mistakes_of_copy(earlier, "is a ciphertext that stood at")


def ciphertexts_moved_since(known: DigestsByKey, file: Path) -> Iterator[Finding]:
    """Ciphertexts of a stack file that earlier updates had at another key, and not at this one.

    Those at keys that may not be encrypted are left out: `mistakes` reports them.

    Args:
        known: the stack's output OUTPUT; empty if it has none.
    """
    for secret in ciphertexts_of(file):
        if secret.digest in known.get(secret.key, ()):
            continue
        keys = [key for key, digests in known.items() if secret.digest in digests]
        if keys:
            yield from secret.mistakes_at_key(f"is a ciphertext that an update had at {keys[0]}")


def digests_since(known: DigestsByKey, file: Path) -> dict[str, list[str]]:
    """The output OUTPUT with the digests of a stack file's ciphertexts added in front.

    A key keeps its newest 100 digests, also when the file has it no more. `known`, the output of
    the last update, stays as it is.
    """
    digests_by_key = {key: list(digests) for key, digests in known.items()}
    for secret in ciphertexts_of(file):
        digests = digests_by_key.setdefault(secret.key, [])
        if secret.digest in digests:
            digests.remove(secret.digest)
        digests.insert(0, secret.digest)
        del digests[_MOST_KNOWN:]
    return digests_by_key


def with_masked_secrets(raw: Mapping[str, Any], decrypted: Set[str], file: Path) -> dict[str, Any]:
    """A program's configuration as a plan reads it: MASK in place of what the engine decrypted.

    The engine tells only the top-level keys in which something was encrypted. So in those keys
    every value gets MASK that the stack's file does not have in clear, even if it comes in clear
    from an environment or from `Pulumi.yaml`. Without the file those keys are left out; of one that
    is refused or unreadable, nothing counts as clear.

    Args:
        raw: the values of the `kai-fleet:` keys, decrypted, by key without the prefix.
        decrypted: those of these keys in which something was encrypted.
        file: the stack's file.
    """
    if not file.is_file():
        return {key: value for key, value in raw.items() if key not in decrypted}
    in_file = own_keys(yaml_file.mapping(file).get("config"))
    masked = dict(raw)
    for key in decrypted & raw.keys():
        masked[key] = _masked(raw[key], in_file.get(key))
    return masked


def _masked(value: Any, clear: Any) -> Any:
    """The value with MASK for each part of it that differs from `clear`, the file's value.

    Values of different types, and lists of different lengths, are compared as a whole. Keys of
    mappings and None for what is absent in `clear` stay.
    """
    if isinstance(value, Mapping) and isinstance(clear, Mapping):
        return {key: _masked(inner, clear.get(key)) for key, inner in value.items()}
    are_lists = isinstance(value, list) and isinstance(clear, list)
    if are_lists and len(value) == len(clear):
        return list(map(_masked, value, clear))
    return value if value == clear else MASK


def mistakes(masked: object, stack: str) -> Iterator[Finding]:
    """Ciphertexts at keys that may not be encrypted, and secrets in clear text.

    A key of a secret may be empty or null.

    Args:
        masked: the `kai-fleet:` keys of a file, without the prefix, with MASK in place of
            ciphertexts. A text that reads like MASK counts as one.
        stack: name of the stack, for the commands in messages.
    """
    for location, value in _leaves(masked):
        if takes_secret(location):
            if value not in (None, "", MASK):
                complete = (f"{NAMESPACE}:{location[0]}", *location[1:])
                command = _encrypt("it", complete, stack)
                yield wrong_key(key_path(location), f"is a secret in clear; {command}")
        elif value == MASK:
            yield wrong_key(key_path(location), _MAY_NOT_BE_ENCRYPTED, location)


def with_command(finding: Finding, stack: str) -> Finding:
    """The finding with the complete command in place of SET_SECRET in its fix, if that has it.

    A registry's name may have dots, so the path to its password is split from both ends. `stack`
    is the stack's name.
    """
    password = re.fullmatch(r"(.*registries)\.(.+)\.(password)", finding.path)
    location: Location = password.groups() if password else (finding.path,)
    return replace(finding, fix=finding.fix.replace(SET_SECRET, _encrypt("it", location, stack)))


def takes_secret(location: Location) -> bool:
    """Whether the key at this path, without the prefix `kai-fleet:`, takes a secret.

    It is enough that it does so in one kind of stack file, a platform's or a team's.
    """
    if not location or location[-1] not in _KEYS:
        return False
    return any(_takes_secret(location, model) for model in (Settings, TeamStack))


def _takes_secret(location: Location, model: type[Strict]) -> bool:
    """Whether the model of a file has a secret at this path; False if it has no such key."""
    field = fields_beside(location, model).get(location[-1])
    if field is None:
        return False
    return SecretStr in (field.annotation, *get_args(field.annotation))


def _encrypt(what: str, location: Location, stack: str) -> str:
    """The fix: to encrypt a value, with the command for it, which selects the stack first.

    `what` is the value in words, such as `it anew`. `location` begins with `NAMESPACE:NAME`.
    """
    create = f"pulumi stack select --create {stack}"
    in_quotes = _path_of(location).replace("'", "'\\''")
    command = f"{create} && pulumi config set --secret --path '{in_quotes}'"
    return f"encrypt {what}, the command asks for the value: {command} --stack {stack}"


def _path_of(location: Location) -> str:
    """A path as `pulumi config set --path` reads it. The first element stays as it is."""
    return f"{location[0]}{''.join(map(_step, location[1:]))}"


def _step(key: str | int) -> str:
    """A key below others: `.key`, or `["key"]` if it has other characters than a plain one; `[0]`
    for an index of a list.
    """
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    return f"[{json.dumps(key, ensure_ascii=False)}]"
