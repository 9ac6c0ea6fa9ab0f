"""Secrets of a stack file: where one may stand, and that each is for one purpose and one team.

The engine decrypts a ciphertext wherever it stands: who cannot decrypt it could copy it to where he
reads it. Each encryption has a nonce of its own, so equal ciphertexts are copies. A digest of one
tells nothing of the secret, so a stack's outputs keep where each stood.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import SecretStr

from kai_fleet.finding import Finding
from kai_fleet.settings import Settings
from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.mistakes import NAMESPACE, key_path, own_keys, wrong_key
from kai_fleet.settings.sections.models import SET_SECRET, Location, fields_beside
from kai_fleet.settings.team_stack import TeamStack
from kai_fleet.wording import MASK, listed, on_one_line

OUTPUT: Final = "ciphertexts"  # of a stack: by key, the digests of what stood there, newest first
Known = Mapping[str, Sequence[str]]
_MOST_KNOWN: Final = 100  # of one key
# With what a stack's secrets are encrypted. Where two stacks have the same, each decrypts both.
_STACK_KEYS: Final = ("encryptionsalt", "encryptedkey")
_KEYS: Final = ("dataSource", "kubeconfig", "password")
_NO_KEY: Final = (
    f"is encrypted, at a key for no secret, as {listed(_KEYS, 'and')} are: what is decrypted would"
    " be read there; write it in clear in the stack's own file, or take it from a Secret of the"
    " cluster"
)


@dataclass(frozen=True)
class Encrypted:
    """A ciphertext, and the key where it stands."""

    file: str
    place: Location
    content: tuple[bytes, ...] | str

    @property
    def path(self) -> str:
        """Its key, as a message names it."""
        return ".".join(on_one_line(str(part)) for part in self.place)

    @property
    def allowed(self) -> bool:
        """Whether a secret may be there: of other programs' keys nobody here knows."""
        key, colon, name = str(self.place[0]).partition(":")
        return key != NAMESPACE or not colon or is_key((name, *self.place[1:]))

    @property
    def is_of_stack(self) -> bool:
        """Whether it is no secret, and what the stack's secrets are encrypted with."""
        return self.place[0] in _STACK_KEYS

    @property
    def key(self) -> str:
        """Its key as `pulumi config set --path` reads it, another text for each place."""
        return _path_of(self.place)

    @property
    def digest(self) -> str:
        """Known of it to who reads the stack's outputs; nobody finds the ciphertext by it."""
        return sha256(repr(self.content).encode()).hexdigest()[:32]

    def copy_of(self, others: Iterable["Encrypted"], cause: str) -> Iterator[Finding]:
        """The mistake that it stands at another key, too, or stood there."""
        same = (other for other in others if other.content == self.content and other != self)
        if (other := next(same, None)) is not None:
            there = other.path if other.file == self.file else f"{other.path} in {other.file}"
            yield from self.refused(f"{cause} {there}")

    def refused(self, cause: str) -> Iterator[Finding]:
        """The mistake at its key; one that is for no secret is refused already."""
        stack = self.file.removeprefix("Pulumi.").removesuffix(".yaml")
        if self.is_of_stack:
            cause = f"{cause}, and what is encrypted for one stack is for that one"
            fix = "take it out with all that is encrypted, and set those secrets again"
            yield wrong_key(self.path, f"{cause}; {fix}: pulumi makes another")
        elif self.allowed:
            cause = f"{cause}, and a secret is for one purpose and one team"
            yield wrong_key(self.path, f"{cause}; {_encrypt('it anew', self.place, stack)}")


def encrypted(file: Path) -> list[Encrypted]:
    """What is encrypted in a stack file, whosever key it is, and with what; nothing of one that is
    unreadable.
    """
    document = yaml_file.mapping(file)
    found = [
        Encrypted(file.name, place, _content(value["secure"]))
        for place, value in _leaves(document.get("config"))
        if isinstance(value, Mapping)
    ]
    keys = _STACK_KEYS if found else ()
    return found + [
        Encrypted(file.name, (key,), _content(str(document[key])))
        for key in keys
        if key in document
    ]


def encrypted_in(folder: Path) -> list[Encrypted]:
    """That of every stack file of a folder."""
    files = sorted(folder.glob("Pulumi.*.yaml"))
    return [secret for file in files for secret in encrypted(file)]


def _leaves(value: Any, place: Location = ()) -> Iterator[tuple[Location, Any]]:
    """Each text, number or `{secure: …}` of a file, with its place."""
    # For the engine `secure` beside others, or with no text, is a key of that name.
    secure = isinstance(value, Mapping) and len(value) == 1 and value.get("secure")
    if isinstance(value, Mapping | list) and not isinstance(secure, str):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(item, (*place, key))
    else:
        yield place, value


def _content(ciphertext: str) -> tuple[bytes, ...] | str:
    """What would be decrypted: base64 can be written in several ways."""
    try:
        return tuple(b64decode(f"{part}==") for part in ciphertext.split(":"))
    except ValueError:
        return ciphertext


def copies(file: Path) -> Iterator[Finding]:
    """Ciphertexts of a stack file that stand at another key, too, of its own or another stack.

    Those at keys that are for no secret are `mistakes`.
    """
    for secret in encrypted(file.parent / "Pulumi.yaml"):
        cause = "is encrypted in Pulumi.yaml, which is of every stack"
        yield wrong_key(secret.path, f"{cause}; write it in the stack's file")
    if own := encrypted(file):
        every = [each for each in (*own, *encrypted_in(file.parent)) if each.allowed]
        for secret in own:
            yield from secret.copy_of(every, "is the same ciphertext as")


def moved(before: Iterable[Encrypted], now: Iterable[Encrypted]) -> Iterator[Finding]:
    """Ciphertexts that stood at other keys before."""
    earlier = list(before)
    for secret in now:
        if secret not in earlier:
            yield from secret.copy_of(earlier, "is a ciphertext that stood at")


def moved_since(known: Known, file: Path) -> Iterator[Finding]:
    """Ciphertexts of a stack file that stood at other keys in an update before, by its outputs."""
    for secret in encrypted(file):
        if secret.digest not in known.get(secret.key, ()):
            there = next((key for key, seen in known.items() if secret.digest in seen), None)
            if there is not None:
                yield from secret.refused(f"is a ciphertext that an update had at {there}")


def known_since(known: Known, file: Path) -> dict[str, list[str]]:
    """The same outputs, with what stands in a stack file now."""
    keys = {key: [*seen] for key, seen in known.items()}
    for secret in encrypted(file):
        before = (seen for seen in keys.get(secret.key, ()) if seen != secret.digest)
        keys[secret.key] = [secret.digest, *before][:_MOST_KNOWN]
    return keys


def as_written(raw: Mapping[str, Any], decrypted: Set[str], file: Path) -> dict[str, Any]:
    """A program's configuration as a plan reads it: MASK in place of what the engine decrypted.

    The engine says of a top-level key only that some part of it was encrypted. So all that does not
    stand in clear in the stack's own file counts, be it of an environment or of `Pulumi.yaml`.
    Without that file nobody wrote a ciphertext: the keys are left out.
    """
    if not file.is_file():
        return {key: value for key, value in raw.items() if key not in decrypted}
    own = own_keys(yaml_file.mapping(file).get("config"))
    return {k: _masked(value, own.get(k)) if k in decrypted else value for k, value in raw.items()}


def _masked(value: Any, written: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(written, Mapping):
        return {key: _masked(item, written.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return list(map(_masked, value, written))
    return value if value == written else MASK


def mistakes(written: Any, stack: str) -> Iterator[Finding]:
    """Secrets where none may be, and secrets in clear. MASK stands for what is encrypted."""
    for place, value in _leaves(written):
        if is_key(place):
            if value not in (None, "", MASK):
                command = _encrypt("it", (f"{NAMESPACE}:{place[0]}", *place[1:]), stack)
                yield wrong_key(key_path(place), f"is a secret in clear; {command}")
        elif value == MASK:
            yield wrong_key(key_path(place), _NO_KEY, place)


def with_command(finding: Finding, stack: str) -> Finding:
    """A finding with the command that sets its secret, where it says only that one is missing."""
    account = re.fullmatch(r"(.*registries)\.(.+)\.(password)", finding.path)
    command = _encrypt("it", account.groups() if account else (finding.path,), stack)
    return replace(finding, fix=finding.fix.replace(SET_SECRET, command))


def is_key(place: Location) -> bool:
    """Whether a secret is meant to be there."""
    if not place or place[-1] not in _KEYS:
        return False
    fields = (fields_beside(place, model).get(place[-1]) for model in (Settings, TeamStack))
    return any(
        field and SecretStr in (field.annotation, *get_args(field.annotation)) for field in fields
    )


def _encrypt(what: str, place: Location, stack: str) -> str:
    """With the command."""
    create = f"pulumi stack select --create {stack}"
    command = f"{create} && pulumi config set --secret --path '{_path_of(place)}'"
    return f"encrypt {what}, the command asks for the value: {command} --stack {stack}"


def _path_of(place: Location) -> str:
    """A place as `pulumi config set --path` reads it."""
    plain = re.compile(r"[A-Za-z0-9_-]+")
    keys = (str(part) for part in place[1:])
    written = (
        f".{key}" if plain.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
        for key in keys
    )
    return f"{place[0]}{''.join(written)}"
