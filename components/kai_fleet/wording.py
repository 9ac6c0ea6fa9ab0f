"""Parts of messages: lists, counts, similar names, and foreign texts without control characters."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from kai_usage.words import (
    MOST,
    agreeing,
    json_without_controls,
    listed,
    number_with_noun,
    plural,
    short_line,
    without_controls,
)

# Words of kai_usage that are imported from here.
__all__ = [
    "MOST",
    "agreeing",
    "json_without_controls",
    "listed",
    "number_with_noun",
    "plural",
    "short_line",
    "without_controls",
]

MASK = "[secret]"  # shown in place of an encrypted value
# Ratio of difflib from which two names are taken for one. It holds for `sheduler` and `contxt`, and
# not for serviceMonitor and serviceAccount.
_ALIKE = 0.8
# Escape sequences of JSON that may mean a control character.
_ESCAPED = re.compile(r"\\[bfru]")
_COLOUR = re.compile("(\x1b\\[[0-9;]{0,20}m)")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")
_DECIMAL = re.compile(rf"({_WHOLE.pattern})(\.[0-9]{{1,17}})?")
_ENDLESS = re.compile(r"\S{200,}")


def nearest_first(name: str, names: Sequence[str]) -> list[str]:
    """The names in their order, but first the one of the first 100 that resembles `name` most.

    If none of these resembles it, by difflib's ratio of 0.6, all stay in their order.
    """
    close = get_close_matches(name, names[:100], n=1)
    return close + [other for other in names if other not in close]


def spelt_like(key: str, known: Sequence[str]) -> str | None:
    """The known key that the user probably meant by `key`, in any case of letters; else None.

    It is the most similar one whose ratio is at least `_ALIKE`, else, for a key of four letters and
    more, the only one that ends with `key` or with which `key` ends: existingGuards for `guards`.
    """
    by_lower_case = {name.lower(): name for name in known}
    written = key.lower()
    close = get_close_matches(written, by_lower_case, n=1, cutoff=_ALIKE)
    if not close and len(key) > 3:
        close = [name for name in by_lower_case if name.endswith(written) or written.endswith(name)]
    return by_lower_case[close[0]] if len(close) == 1 else None


def number_in(value: object, *, whole: bool = True) -> str:
    """The text itself if it is a number without a sign; "" for every other value.

    It has at most 18 digits, without zeros in front. Only if it need not be `whole` it may have
    decimals, at most 17.
    """
    form = _WHOLE if whole else _DECIMAL
    if isinstance(value, str) and form.fullmatch(value):
        return value
    return ""


def on_one_line(message: str) -> str:
    """The message with line breaks and unprintable characters escaped.

    A word of 200 characters or more is cut to its first 60 and `…`.
    """
    escaped = "".join(map(_printable, message))
    return _ENDLESS.sub(lambda word: f"{word[0][:60]}…", escaped)


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return ascii(character).strip("'")


def beginning_and_end(text: object, most: int) -> str:
    """The text on one line, without control characters; of a longer one only beginning and end.

    `most` is the number of characters, five or more.
    Errors of Helm and Kubernetes end with the cause, so the middle is left out.
    """
    line = " ".join(without_controls(str(text)).split())
    if len(line) <= most:
        return line
    head = most // 4
    tail = most - head - len(" … ")
    return f"{line[:head]} … {line[-tail:]}"


def with_colours(text: str) -> str:
    """The text without control characters, but with the terminal's colour sequences."""
    parts = _COLOUR.split(text)
    parts[::2] = map(without_controls, parts[::2])  # the texts between the colours
    return "".join(parts)


def may_have_controls(json: str) -> bool:
    """Whether strings of a valid JSON text may have control characters: True for any doubt."""
    return not json.isascii() or "\x7f" in json or _ESCAPED.search(json) is not None
