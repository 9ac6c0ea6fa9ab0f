"""Untrusted text: terminal control characters, and names that pose as Kubernetes' own."""

import re
from typing import Any, Final

# Control characters but for tab and line break, and Unicode's invisible and directional ones.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
_ESCAPED: Final = re.compile(r"\\[bfru]")  # in JSON
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


_SYSTEM: Final = "system:"


def may_name_system(prefix: str) -> bool:
    """Whether names with this prefix can be names of Kubernetes' own, `system:…`.

    `sy` and an identity provider's `stem:masters` is one. The API server reads `-` as no prefix.
    """
    return prefix in ("", "-") or _SYSTEM.startswith(prefix) or prefix.startswith("system")
