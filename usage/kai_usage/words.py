"""Parts of messages: lists of names, counts, and texts of others without control characters."""

import re
from collections.abc import Sequence
from typing import Any

# Control characters, except tab and line feed, Unicode's invisible and directional characters, and
# lone surrogates.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
MOST = 2000  # characters of a line, unless a caller says otherwise
_PLURAL_VERBS = {
    "is": "are",
    "has": "have",
    "was": "were",
    "does": "do",
    "goes": "go",
}
_ENDS_WITH_ES = ("s", "x", "ch", "sh")


def number_with_noun(number: float, thing: str, verb: str = "") -> str:
    """The number with its noun, `3 queues`, and with its verb if there is one: `1 pod waits`.

    `thing` and `verb` are in the singular, "" for no verb. A float has six digits at most.
    """
    amount = f"{number:g}" if isinstance(number, float) else str(number)
    words = [amount, plural(number, thing), agreeing(number, verb)]
    return " ".join(words).rstrip()


def plural(number: float, thing: str) -> str:
    """The noun `thing`, in the plural unless the number is 1: `policies`."""
    if number == 1:
        return thing
    ends_with_ies = re.search("[^aeiou]y$", thing)
    if ends_with_ies:
        return f"{thing[:-1]}ies"
    if thing.endswith(_ENDS_WITH_ES):
        return f"{thing}es"
    return f"{thing}s"


def agreeing(number: float, verb: str) -> str:
    """The verb, in the plural unless the number is 1: `are` for `is`, `wait` for `waits`."""
    if number == 1:
        return verb
    return _PLURAL_VERBS.get(verb, verb.removesuffix("s"))


def listed(names: Sequence[str], last: str = "or", limit: int = 6) -> str:
    """The names as `a, b or c`, with `last` as the last separator; "" for no names.

    With more names than `limit` the first `limit` are there, and the rest is counted, without
    `last`: `a, b, … (40 more)`. The names stay as they are, also with control characters.
    """
    if len(names) > limit:
        return f"{', '.join(names[:limit])}, … ({len(names) - limit} more)"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def short_line(text: object, most: int = MOST) -> str:
    """The text on one line, safe to show: as `without_controls`, cut to `most` characters.

    White space becomes single spaces, without any at the ends. A line that is longer than `most`
    ends in `…`. Only the first four times as many characters of the text are read: if they make a
    shorter line, what follows them is lost without `…`. None gives `None`.
    """
    line = " ".join(without_controls(str(text)[: most * 4]).split())
    if len(line) <= most:
        return line
    return f"{line[: most - 1]}…"


def without_controls(text: str) -> str:
    """The text without control characters, but with its tabs and line feeds; carriage returns go.

    Unicode's invisible and directional characters, and lone surrogates, are taken out as well.
    """
    return _CONTROLS.sub("", text)


def json_without_controls(value: Any) -> Any:
    """A copy of a JSON value without control characters in its keys and strings.

    Of two keys that become one the later value counts.
    """
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [json_without_controls(element) for element in value]
    if isinstance(value, dict):
        return {without_controls(key): json_without_controls(inner) for key, inner in value.items()}
    return value
