"""Reading YAML as the engine does, within limits.

Pulumi's engine reads YAML 1.1 numbers (`010` is 8), passes values on as JSON, and has no dates or
binaries. A few lines of aliases can stand for billions of values. What engine and plan would read
differently, or could not carry, is refused by its line before anything is built from the text.
"""

import math
import re
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, ScalarEvent

MOST_BYTES: Final = 8 * 1024 * 1024
MOST_VALUES: Final = 1_000_000
MOST_LEVELS: Final = 200


class RefusedYamlError(ValueError):
    """The text holds something that is refused; the message begins with its place."""


def place(line: int, column: int) -> str:
    """How messages begin; both count from 1."""
    return f"line {line} column {column}:"


def place_of(text: str, index: int) -> str:
    """The place of one character of a text."""
    return place(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def load(text: str) -> Any:
    """What the text says; two keys of one name are an error. Raises YAMLError, ValueError and
    RecursionError; RefusedYamlError, a ValueError, for what engine and plan read differently.

    By libyaml: a thousand queues in a tenth of a second. It refuses some of what YAML allows, such
    as a key with a colon between braces, and says less well what is wrong; so its refusal is not
    the last word.
    """
    _check(text)
    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, ValueError):
        return YAML(typ="safe", pure=True).load(text)


def load_all(text: str) -> list[Any]:
    """What each document of the text says, with the limits of `load` for all of them together."""
    _check(text)
    try:
        return list(YAML(typ="safe").load_all(text))
    except (YAMLError, ValueError):
        return list(YAML(typ="safe", pure=True).load_all(text))


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping that a file is; empty for one that is not there, is none, or cannot be read."""
    try:
        document = load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


_CONTROL: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]"
# Wrong anywhere in the text.
_CHARACTERS: Final = (
    # The ends of a line for some readers only.
    (re.compile(r"[\x85\u2028\u2029]"), "has a line separator ({}); write a plain line break"),
    (re.compile(_CONTROL), "has a control character ({}); take it out"),
)
# Wrong in any text that an escape may have made.
_ESCAPED: Final = (
    (
        re.compile(r"[\ud800-\udfff]"),
        "has half of a character (a lone surrogate); write the whole one",
    ),
    (re.compile(_CONTROL), "has a control character: {}; take it out"),
)
_OTHER_NUMBER: Final = (
    "has {}, which is another number for Pulumi than for other readers; write the plain number, or"
    " put it in quotes if it is text"
)
_NO_UNDERSCORE: Final = "has {}; write the number without _, or put it in quotes"
# Wrong as a whole value without quotes, in this order.
_PLAIN: Final = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE), sentence)
    for pattern, sentence in (
        (r"[-+]?0_*[box][-+]?[0-9a-f_]+", _OTHER_NUMBER),
        (r"[-+]?\.[0-9_]+e[-+]?[0-9]+", _OTHER_NUMBER),
        (r"(?![-+]?0(\.[0-9]*)?\Z)[-+]?0[0-9_]+(\.[0-9_]*)?", _OTHER_NUMBER),
        # With an underscore anywhere: the readers do not agree in which places one may stand.
        (r"(?=.*_)(?=.*[0-9])[-+]?[0-9.][0-9_]*\.?[0-9_]*(e[-+]?[0-9_]*)?", _NO_UNDERSCORE),
        (r"[-+][0-9._]*_[0-9._]*", _NO_UNDERSCORE),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t ].*)?", "has the date {}; put it in quotes"),
        (
            r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?",
            "has {}, a number for some readers; put it in quotes",
        ),
        (r"[-+]?\.(inf|nan)", "has {}, which is no number; write a finite one"),
        (
            r"[-+]?[0-9]{17,}",
            "has {}, more digits than a number keeps; put it in quotes if it is text",
        ),
    )
)
_POWER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", re.ASCII)
_ANCHOR: Final = re.compile(r"[0-9A-Za-z_-]+", re.ASCII)
# Of another tag the engine refuses what others convert.
_TAGS: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq"))


def _check(text: str) -> None:
    """Raise RefusedYamlError. What is no YAML at all is left for the reader to say."""
    if len(text) > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise RefusedYamlError(
            f"{place(1, 1)} is longer than {most}; write queues into other files"
        )
    for pattern, sentence in _CHARACTERS:
        if match := pattern.search(text):
            where = place_of(text, match.start())
            raise RefusedYamlError(f"{where} {sentence.format(ascii(match[0]))}")
    for pure in (False, True):  # libyaml refuses some of what YAML allows
        try:
            _check_events(YAML(typ="safe", pure=pure).parse(text))
            break
        except RefusedYamlError:
            raise
        except (YAMLError, ValueError, RecursionError):
            continue


def _check_events(events: Any) -> None:
    """One pass over the parser's events: nothing is built, so nothing can grow."""
    sizes: list[int] = [0]  # of the open collections, and of the document
    names: list[str | None] = []  # their anchors
    anchored: dict[str, int] = {}
    for event in events:
        wrong = _wrong(event)
        size, anchor = 0, getattr(event, "anchor", None)
        if isinstance(event, ScalarEvent):
            size = 1
        elif isinstance(event, CollectionStartEvent):
            sizes.append(1)
            names.append(anchor)
            if len(names) > MOST_LEVELS:
                wrong = wrong or f"is {MOST_LEVELS} levels deep; write it flatter"
        elif isinstance(event, CollectionEndEvent):
            size, anchor = sizes.pop(), names.pop()
        elif isinstance(event, AliasEvent):
            if anchor in names:
                wrong = wrong or f"contains itself (*{anchor}); write it out"
            size, anchor = anchored.get(event.anchor, 1), None
        sizes[-1] += size
        if size and anchor is not None:
            anchored[anchor] = size
        if sizes[-1] > MOST_VALUES:
            wrong = wrong or f"stands for more than {MOST_VALUES:,} values; use no aliases"
        if wrong:
            mark = event.start_mark
            raise RefusedYamlError(f"{place(mark.line + 1, mark.column + 1)} {wrong}")


def _wrong(event: Any) -> str | None:
    """What is wrong with an event by itself."""
    anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
    if anchor is not None and not _ANCHOR.fullmatch(anchor):
        return f"has the anchor {_shown(anchor)}; use letters and digits"
    if tag is not None and str(tag) not in ("None", *_TAGS):
        return f"has the type {_shown(str(tag))}; drop it, and write text in quotes"
    if not isinstance(event, ScalarEvent):
        return None
    text = event.value
    for pattern, sentence in _ESCAPED:
        if pattern.search(text):
            return sentence.format(_shown(text))
    if event.style == '"' and text.startswith("\n"):
        return "begins with a line break, which Pulumi drops; take it out"
    if event.style:
        return None  # in quotes, or a block: it is text for every reader
    for pattern, sentence in _PLAIN:
        if pattern.fullmatch(text):
            return sentence.format(_shown(text))
    if _POWER.fullmatch(text) and not math.isfinite(float(text)):
        return f"has {_shown(text)}, which is no number; write a finite one"
    return None


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else f"{text[:37]}…")


_CONFLICT: Final = re.compile(r"^\s*([<>=|])\1{6}(?= |$)", re.MULTILINE)
_ODD_SPACE: Final = re.compile(r"[^\S\t\n\r ]|[\u200b\ufeff]")  # a browser's, pasted
_NO_SPACE: Final = re.compile(r"\s*([\w-]+):([^\s:]+)\s*", re.ASCII)
# The parser's words, and what they mean to a person who edits the file; \1 is a name in them.
_MEANS: Final = (
    (r'found duplicate key "(.*?)" with value', r"has the key \1 again, in the same mapping"),
    (r"found undefined alias '(.*?)'", r"names *\1, and no &\1 stands above it"),
    (r"found character '\\t'", "has a tab; indent with spaces"),
    ("mapping values are not allowed", "a key where none can be: check the indentation, or quotes"),
    (r"expected <block end>, but found '[]}]'", "has a } or ] too many"),
    ("expected <block end>|did not find expected", "is indented otherwise than the lines above"),
    ("found another document", "begins a second document (---); keep one"),
    ("cannot start any token", "begins a value with a character of YAML's own; put it in quotes"),
    ("expected alphabetic", "has * or & without a name; put such text in quotes"),
)
# Those that the parser notices lines later: what they mean where it began to read.
_MEANS_BEFORE: Final = (
    ("could not find expected ':'", "is no key with a value; write `key: value`, with the space"),
    ("unexpected end of stream", "has a quote that is not closed"),
    ("expected ',' or|<stream end>", "has a { or [ that is not closed, or lacks a comma"),
)


def mistake(text: str, error: MarkedYAMLError) -> str:
    """Where a text is no YAML, and what is wrong: `line 3 column 1: has a tab; …`."""
    if conflict := _CONFLICT.search(text):
        where = place_of(text, conflict.start(1))
        return f"{where} has a merge conflict ({conflict[0].strip()}); resolve it"
    problem = str(error.problem or error.context)
    mark = error.problem_mark or error.context_mark
    matches = ((re.search(words, problem), means) for words, means in _MEANS)
    sentence = next((match.expand(means) for match, means in matches if match), problem)
    for words, means in _MEANS_BEFORE:
        if sentence == problem and re.search(words, problem):
            sentence, mark = means, error.context_mark or mark
    if mark is None:
        return sentence
    lines = text.split("\n")
    for number in (mark.line, mark.line - 1):
        line_text = lines[number] if 0 <= number < len(lines) else ""
        if odd := _ODD_SPACE.search(line_text):
            code = f"U+{ord(odd[0]):04X}"
            also = f"has a character that looks like a space ({code}); write a plain space"
            return f"{place(number + 1, odd.start() + 1)} {also}"
        if key := _NO_SPACE.fullmatch(line_text):
            also = f"has no space after the colon; write {key[1]}: {key[2]}"
            return f"{place(number + 1, key.end(1) + 1)} {also}"
    return f"{place(mark.line + 1, mark.column + 1)} {sentence}"
