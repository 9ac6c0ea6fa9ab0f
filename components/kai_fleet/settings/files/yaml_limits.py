"""What a stack file may not contain: what engine and plan read differently, or cannot carry.

Pulumi's engine reads YAML 1.1 numbers (`010` is 8), passes values on as JSON, and has no dates or
binaries. A few lines of aliases can stand for billions of values. Each of these is refused by its
line, before anything is built from the file.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    ScalarEvent,
)

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200

_BASE: Final = re.compile(r"[-+]?0_*[boxBOX][-+]?[0-9a-fA-F_]+", re.ASCII)
_NO_DIGIT_FIRST: Final = re.compile(r"[-+]?\.[0-9_]+[eE][-+]?[0-9]+", re.ASCII)
_ZERO_FIRST: Final = re.compile(r"[-+]?0[0-9_]+(\.[0-9_]*)?", re.ASCII)
# With an underscore anywhere: the readers do not agree in which places one may stand.
_UNDERSCORES: Final = re.compile(
    r"(?=.*_)(?=.*[0-9])[-+]?[0-9.][0-9_]*\.?[0-9_]*([eE][-+]?[0-9_]*)?|[-+][0-9._]*_[0-9._]*",
    re.ASCII,
)
_SIXTIES: Final = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", re.ASCII)
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|nan)", re.ASCII | re.IGNORECASE)
_POWER: Final = re.compile(r"[-+]?[0-9]*\.?[0-9]*[eE][-+]?[0-9]+", re.ASCII)
_LARGE: Final = re.compile(r"[-+]?[0-9]{17,}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_BREAKS: Final = re.compile(r"[\x85\u2028\u2029]")  # ends of a line for some readers only
_ANCHOR: Final = re.compile(r"[0-9A-Za-z_-]+", re.ASCII)
_TAGS: Final = ("str", "map", "seq")  # of another one the engine refuses what others convert


class Odd(ValueError):  # noqa: N818 - its message is all a user sees
    """The text holds something that is refused; the message begins with its line."""


def check(text: str) -> None:
    """Raises Odd. What is no YAML at all is left for the reader to say."""
    if len(text) > MOST_BYTES:
        raise Odd(f"line 1: is longer than {MOST_BYTES >> 20} MiB; write queues into other files")
    if found := _BREAKS.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise Odd(f"line {line}: has a line separator ({found[0]!a}); write a plain line break")
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise Odd(f"line {line}: has a control character ({found[0]!a}); take it out")
    for pure in (False, True):  # libyaml refuses some of what YAML allows
        try:
            _Scan().run(text, pure)
            break
        except Odd:
            raise
        except (YAMLError, ValueError, RecursionError):
            continue


class _Scan:
    """One pass over the parser's events: nothing is built, so nothing can grow."""

    def __init__(self) -> None:
        self.sizes: list[int] = [0]  # of the open collections, and of the document
        self.names: list[str | None] = []  # their anchors
        self.anchored: dict[str, int] = {}

    def run(self, text: str, pure: bool) -> None:
        for event in YAML(typ="safe", pure=pure).parse(text):
            anchor = getattr(event, "anchor", None)
            if anchor is not None and not _ANCHOR.fullmatch(anchor):
                raise _odd(event, f"has the anchor {_shown(anchor)}; use letters and digits")
            if isinstance(event, ScalarEvent):
                _scalar(event)
                self._add(1, event.anchor)
            elif isinstance(event, CollectionStartEvent):
                _tag(event)
                self.sizes.append(1)
                self.names.append(event.anchor)
                if len(self.names) > MOST_LEVELS:
                    raise _odd(event, f"is {MOST_LEVELS} levels deep; write it flatter")
            elif isinstance(event, CollectionEndEvent):
                self._add(self.sizes.pop(), self.names.pop())
            elif isinstance(event, AliasEvent):
                if event.anchor in self.names:
                    raise _odd(event, f"contains itself (*{event.anchor}); write it out")
                self._add(self.anchored.get(event.anchor, 1), None)
            if self.sizes[-1] > MOST_VALUES:
                raise _odd(event, f"stands for more than {MOST_VALUES:,} values; use no aliases")

    def _add(self, size: int, anchor: str | None) -> None:
        if anchor is not None:
            self.anchored[anchor] = size
        self.sizes[-1] += size


def _scalar(event: Any) -> None:
    _tag(event)
    text = event.value
    if _SURROGATE.search(text):
        raise _odd(event, "has half of a character (a lone surrogate); write the whole one")
    if _CONTROL.search(text):
        raise _odd(event, f"has a control character: {_shown(text)}; take it out")
    if event.style == '"' and text.startswith("\n"):
        raise _odd(event, "begins with a line break, which Pulumi drops; take it out")
    if event.style:
        return  # in quotes, or a block: it is text for everybody
    if (
        _BASE.fullmatch(text)
        or _NO_DIGIT_FIRST.fullmatch(text)
        or (_ZERO_FIRST.fullmatch(text) and not _is_zero(text))
    ):
        raise _odd(
            event,
            f"has {_shown(text)}, which is another number for Pulumi than for other readers; write"
            " the plain number, or put it in quotes if it is text",
        )
    if _UNDERSCORES.fullmatch(text):
        raise _odd(event, f"has {_shown(text)}; write the number without _, or put it in quotes")
    if _DATE.fullmatch(text):
        raise _odd(event, f"has the date {_shown(text)}; put it in quotes")
    if _SIXTIES.fullmatch(text):
        raise _odd(event, f"has {_shown(text)}, a number for some readers; put it in quotes")
    if _NO_NUMBER.fullmatch(text) or (_POWER.fullmatch(text) and not _is_finite(text)):
        raise _odd(event, f"has {_shown(text)}, which is no number; write a finite one")
    if _LARGE.fullmatch(text):
        raise _odd(
            event,
            f"has {_shown(text)}, more digits than a number keeps; put it in quotes if it is text",
        )


def _is_zero(text: str) -> bool:
    return re.fullmatch(r"[-+]?0(\.[0-9]*)?", text, re.ASCII) is not None


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return True  # no number for anybody


def _tag(event: Any) -> None:
    tag = getattr(event, "tag", None)
    if tag is None or str(tag) == "None":
        return
    last = str(tag).rpartition(":")[2]
    if not str(tag).startswith("tag:yaml.org,2002:") or last not in _TAGS:
        raise _odd(event, f"has the type {_shown(str(tag))}; drop it, and write text in quotes")


def _odd(event: Any, sentence: str) -> Odd:
    return Odd(f"line {event.start_mark.line + 1}: {sentence}")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else f"{text[:37]}…")
