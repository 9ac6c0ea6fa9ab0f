"""Texts of messages: lists, counts, names, and what others wrote, without control characters."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from kai_fleet.values import text

MASK: Final = "[secret]"  # shown in place of an encrypted value
# Similarity of misspellings: `sheduler`, `contxt`; not of serviceMonitor and serviceAccount.
_ALIKE: Final = 0.8
# Control characters but for tab and line break, and Unicode's invisible and directional ones.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
_ESCAPED: Final = re.compile(r"\\[bfru]")  # in JSON
_COLOUR: Final = re.compile("(\x1b\\[[0-9;]{0,20}m)")
MOST: Final = 2000
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_DECIMAL: Final = re.compile(rf"({_WHOLE.pattern})(\.[0-9]{{1,17}})?")
_ENDLESS: Final = re.compile(r"\S{200,}")
_PLURAL_VERBS: Final = {"is": "are", "has": "have", "was": "were", "does": "do", "goes": "go"}
_PLURAL_ENDS: Final = ("s", "x", "ch", "sh")


def listed(names: Sequence[str], last: str = "or", limit: int = 6) -> str:
    """`a, b or c`; beyond the limit the rest is counted: `a, b, … (40 more)`."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])}, … ({len(names) - limit} more)"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def counted(number: float, thing: str, verb: str = "") -> str:
    """`1 queue`, `3 queues`; with a verb `1 pod waits`, `3 pods wait`."""
    amount = f"{number:g}" if isinstance(number, float) else number
    return f"{amount} {plural(number, thing)} {agreeing(number, verb)}".rstrip()


def plural(number: float, thing: str) -> str:
    """The noun in singular or plural: `policy`, `policies`."""
    if number == 1:
        return thing
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}{'es' if thing.endswith(_PLURAL_ENDS) else 's'}"


def agreeing(number: float, verb: str) -> str:
    """The verb in singular or plural: `is` and `are`, `waits` and `wait`."""
    return verb if number == 1 else _PLURAL_VERBS.get(verb, verb.removesuffix("s"))


def nearest_first(name: str, names: Sequence[str]) -> list[str]:
    """The names, the one closest to `name` first."""
    close = get_close_matches(name, names[:100], n=1)
    return close + [other for other in names if other not in close]


def spelt_like(key: str, known: Sequence[str]) -> str | None:
    """The known key that `key` is probably a misspelling of; None where none is close.

    Also the only one that ends with it, or with which it ends: `pool` for nodePool.
    """
    lower = {name.lower(): name for name in known}
    close = get_close_matches(key.lower(), lower, n=1, cutoff=_ALIKE)
    if not close and len(key) > 3:
        close = [name for name in lower if name.endswith(key.lower()) or key.lower().endswith(name)]
    return lower[close[0]] if len(close) == 1 else None


def quoted(value: object) -> str:
    """A value as YAML text between quotes: `true` for a boolean, `0.5` for a number."""
    return f'"{str(value).lower() if isinstance(value, bool) else text(value)}"'


def number_in(value: object, *, whole: bool = True) -> str:
    """The number that a text is, such as `128`; "" for other values."""
    form = _WHOLE if whole else _DECIMAL
    return value if isinstance(value, str) and form.fullmatch(value) else ""


def on_one_line(message: str) -> str:
    """Text for a message: line breaks and unprintable characters escaped, words of 200 characters
    or more cut.
    """
    seen = "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in message
    )
    return _ENDLESS.sub(lambda word: f"{word[0][:60]}…", seen)


def plain(text: object, most: int = MOST) -> str:
    """One line without control characters, no longer than `most` characters."""
    line = " ".join(without_controls(str(text)[: most * 4]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def ending(text: object, most: int) -> str:
    """The same with its middle left out: what Helm and Kubernetes say ends with the cause."""
    line = " ".join(without_controls(str(text)).split())
    first = most // 4
    return line if len(line) <= most else f"{line[:first]} … {line[first + 3 - most :]}"


def without_controls(text: str) -> str:
    """The text with its line breaks and tabs, and without other control characters."""
    return _CONTROLS.sub("", text)


def with_colours(text: str) -> str:
    """Text without control characters but with its colours, for the output of a program."""
    parts = _COLOUR.split(text)
    return "".join(part if n % 2 else without_controls(part) for n, part in enumerate(parts))


def may_have_controls(json: str) -> bool:
    """Whether a JSON text may have control characters: a quick check before `cleaned`."""
    return not json.isascii() or _ESCAPED.search(json) is not None


def cleaned(value: Any) -> Any:
    """A JSON value whose strings have no control characters."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {without_controls(key): cleaned(item) for key, item in value.items()}
    return value
