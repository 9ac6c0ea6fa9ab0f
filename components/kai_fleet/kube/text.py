"""What others wrote: text that may command a terminal, names that may pose as Kubernetes' own."""

import re
from typing import Any, Final

# Control characters but for tab and line break, and Unicode's invisible and directional ones.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
# The same in JSON, as it is or escaped. An escaped backslash before a `u` costs a look, no more.
_IN_JSON: Final = re.compile(
    rb"\\[bfr]|\\u(00([0189]|7f|ad)|061c|180e|20[026]|feff|fff[9-b]|d[89a-f])"
    rb"|\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b-\x8f\xa8-\xae]"
    rb"|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81]",
    re.IGNORECASE,
)
_COLOUR: Final = re.compile("(\x1b\\[[0-9;]{0,20}m)")
MOST: Final = 2000


def plain(text: object, most: int = MOST) -> str:
    """One line without control characters, no longer than `most` characters."""
    line = " ".join(without_controls(str(text)[: most * 4]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def without_controls(text: str) -> str:
    """The text with its line breaks and tabs, and without other control characters."""
    return _CONTROLS.sub("", text)


def with_colours(text: str) -> str:
    """The same with its colours left: for a program's screen, which has others' words in it."""
    parts = _COLOUR.split(text)
    return "".join(part if n % 2 else without_controls(part) for n, part in enumerate(parts))


def may_have_controls(json: bytes) -> bool:
    """Whether a JSON text may have some: to look at each of its values takes long."""
    return _IN_JSON.search(json) is not None


def cleaned(value: Any) -> Any:
    """A value from JSON with every text in it without control characters."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {without_controls(key): cleaned(item) for key, item in value.items()}
    return value


_SYSTEM: Final = "system:"


def may_name_system(prefix: str) -> bool:
    """Whether a name that an identity provider chooses can be Kubernetes' own behind a prefix.

    `sy` before its `stem:masters` is one; `-` is no prefix to the API server.
    """
    return prefix in ("", "-") or _SYSTEM.startswith(prefix) or prefix.startswith("system")
