"""Secrets of a stack file: where one may stand, and that each is for one purpose and one team.

The engine decrypts a ciphertext wherever it stands: who cannot decrypt it could copy it to where he
reads it. Each encryption has a nonce of its own, so equal ciphertexts are copies.
"""

import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings import Settings
from kai_fleet.settings.files import stack_keys, yaml_file
from kai_fleet.settings.mistakes import NAMESPACE, Mistake, key_path
from kai_fleet.settings.sections.models import NAMED, Location, secret_places
from kai_fleet.settings.sections.team_stack import TeamStack
from kai_fleet.wording import MASK, listed, on_one_line

PLACES: Final = frozenset((*secret_places(Settings), *secret_places(TeamStack)))
_NO_KEY: Final = (
    "is encrypted, at a key for no secret, as"
    f" {listed(sorted({str(place[-1]) for place in PLACES}), 'and')} are: what is decrypted would"
    " be read there; write it in clear in the stack's own file, or take it from a Secret of the"
    " cluster"
)
_IN_CLEAR: Final = "is a secret in clear"
_FOR_NONE: Final = f"{_IN_CLEAR}, at a key for none; take it from a Secret of the cluster"


@dataclass(frozen=True)
class Encrypted:
    """A ciphertext, the key where it stands, and the team of the workload that it is of."""

    file: str
    place: Location
    team: str
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

    def seen_from(self, other: "Encrypted") -> str:
        """The same where another one is spoken of: with its file and team, if they differ."""
        team = f" of team {on_one_line(self.team)}" if self.team not in ("", other.team) else ""
        return f"{self.path}{team}{f' in {self.file}' if self.file != other.file else ''}"


def encrypted(file: Path) -> list[Encrypted]:
    """What is encrypted in a stack file, whosever key it is; nothing of one that is unreadable."""
    config = yaml_file.mapping(file).get("config")

    def below(value: Any, place: Location, team: str) -> Iterator[Encrypted]:
        text = value.get("secure") if isinstance(value, Mapping) and len(value) == 1 else None
        if isinstance(text, str):  # another value is a key of that name for the engine
            yield Encrypted(file.name, place, team, _content(text))
        elif isinstance(value, Mapping | list):
            for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
                yield from below(item, (*place, key), team)

    return list(below(config, (), ""))


def encrypted_in(folder: Path) -> list[Encrypted]:
    """That of every stack file of a folder."""
    return [it for file in sorted(folder.glob("Pulumi.*.yaml")) for it in encrypted(file)]


def _content(ciphertext: str) -> tuple[bytes, ...] | str:
    """What would be decrypted: base64 can be written in several ways."""
    try:
        return tuple(b64decode(f"{part}==") for part in ciphertext.split(":"))
    except ValueError:
        return ciphertext


def copies(file: Path) -> Iterator[Mistake]:
    """Ciphertexts of a stack file that stand at another key, too, of its own or another stack.

    Of those at keys that are for no secret `mistakes` tells.
    """
    for it in encrypted(file.parent / "Pulumi.yaml"):
        said = "is encrypted in Pulumi.yaml, which is of every stack; write it in the stack's file"
        yield Mistake(it.path, said)
    if own := encrypted(file):
        same = defaultdict(set)
        for it in (*own, *encrypted_in(file.parent)):
            if it.allowed:
                same[it.content].add(it)
        for it in own:
            others = sorted(other.seen_from(it) for other in same[it.content] - {it})
            if it.allowed and others:
                yield _anew(it, f"is the same ciphertext as {listed(others, 'and')}")


def moved(before: Iterable[Encrypted], now: Iterable[Encrypted]) -> Iterator[Mistake]:
    """Ciphertexts that stood at other keys before."""
    was = defaultdict(list)
    for it in before:
        was[it.content].append(it)
    for it in now:
        if it.allowed and was[it.content] and it not in was[it.content]:
            yield _anew(it, f"is a ciphertext that stood at {was[it.content][0].seen_from(it)}")


def _anew(it: Encrypted, what: str) -> Mistake:
    what = f"{what}, and a secret is for one purpose and one team; {_encrypt('it anew', it.place)}"
    return Mistake(it.path, what)


def _encrypt(what: str, place: Location) -> str:
    command = f"pulumi config set --secret --path '{_path(place)}' --stack STACK"
    return f"encrypt {what}, the command asks for the value: {command}"


def as_written(raw: Mapping[str, Any], decrypted: Set[str], file: Path) -> dict[str, Any]:
    """A program's configuration as a plan reads it: MASK in place of what the engine decrypted.

    The engine says of a top-level key only that some part of it was encrypted. So all that does not
    stand in clear in the stack's own file counts, be it of an environment or of `Pulumi.yaml`.
    Without that file nobody wrote a ciphertext: the keys are left out.
    """
    if not file.is_file():
        return {key: it for key, it in raw.items() if key not in decrypted}
    config = yaml_file.mapping(file).get("config")
    written = config if isinstance(config, Mapping) else {}
    own = stack_keys.own({k: it for k, it in written.items() if isinstance(k, str)})
    return {k: _masked(it, own.get(k)) if k in decrypted else it for k, it in raw.items()}


def _masked(value: Any, written: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(written, Mapping):
        return {key: _masked(item, written.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return list(map(_masked, value, written))
    return value if value == written else MASK


def mistakes(written: Mapping[str, Any]) -> Iterator[Mistake]:
    """Secrets where none may be, and secrets in clear. MASK stands for what is encrypted."""
    for key, value in written.items():
        yield from _below(value, (key,))


_SECRET_NAMES: Final = re.compile(
    r"(password|passwd|passphrase|token|secret|dockerconfigjson|kubeconfig"
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


def _below(value: Any, place: Location, name: str = "") -> Iterator[Mistake]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            # A container's environment: {name: HF_TOKEN, value: …}.
            variable = str(value.get("name", "")) if key == "value" else ""
            yield from _below(item, (*place, str(key)), variable)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            flag = f"{value[number - 1]} " if number and isinstance(item, str) else ""
            if item != MASK and _FLAG.match(f"{flag}{item}"):
                yield Mistake(key_path((*place, number)), _FOR_NONE)
            else:
                yield from _below(item, (*place, number))
    elif is_key(place):
        if value not in (None, "", MASK):
            whole = (f"{NAMESPACE}:{place[0]}", *place[1:])
            yield Mistake(key_path(place), f"{_IN_CLEAR}; {_encrypt('it', whole)}")
    elif value == MASK:
        yield Mistake(key_path(place), _NO_KEY)
    elif _is_secret(value, place, name):
        yield Mistake(key_path(place), _FOR_NONE)


def is_key(place: Location) -> bool:
    """Whether a secret is meant to be there."""
    return any(
        len(place) == len(it) and all(a in (NAMED, b) for a, b in zip(it, place, strict=True))
        for it in PLACES
    )


def _is_secret(value: Any, place: Location, name: str) -> bool:
    """Whether a value in clear is one, by its form or by its key among values of a chart."""
    if isinstance(value, str) and (_FORMS.search(value) or _FLAG.match(value)):
        return True
    last = name or str(place[-1])
    bare = last.lower().replace("_", "").replace("-", "").removeprefix(".")
    in_values = "values" in place[:-1] or "env" in place[:-1]
    if isinstance(value, int) and not isinstance(value, bool):  # 0 and 1 are switches
        return in_values and value > 1 and bare.endswith(("password", "passwd", "passphrase"))
    named = in_values and isinstance(value, str) and value and _SECRET_NAMES.search(bare)
    return bool(named) and not _is_reference(bare, value)


def _is_reference(key: str, value: str) -> bool:
    """Whether a chart's key names a Secret of the cluster, and holds none."""
    return key.startswith(("existing", "pull", "imagepull")) or value.lower() in ("true", "false")


def _path(place: Location) -> str:
    """As `pulumi config set --path` reads it."""
    parts = [str(place[0])]
    for part in place[1:]:
        plain = isinstance(part, str) and re.fullmatch(r"[A-Za-z0-9_-]+", part)
        parts.append(
            f".{part}" if plain else f"[{part}]" if isinstance(part, int) else f'["{part}"]'
        )
    return "".join(parts)
