"""Parts of messages: lists of names, and texts of others without control characters."""

import re
from collections.abc import Sequence
from typing import Final

# Control characters, except tab and line break, and Unicode's invisible and directional characters.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
MOST: Final = 2000  # characters


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

    One that is cut ends in `…`. Only the first four times as many characters are read. None gives
    `None`.
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
