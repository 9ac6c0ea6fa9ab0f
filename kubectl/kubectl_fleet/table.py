"""Amounts, words and bars as the tables show them."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

UNLIMITED: Final = -1.0
BAR_WIDTH: Final = 10
_WIDEST: Final = 100_000
_COLOURS: Final = ("green", "yellow", "cyan", "dim")
# Control characters, and Unicode's invisible and directional ones: events quote what people wrote.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def bar(parts: Sequence[float]) -> Text:
    """Draw the amounts that are a queue's own, borrowed, lent and free.

    Each has its part of BAR_WIDTH characters; without any amount there is no bar.
    """
    text, whole, drawn, total = Text(), sum(parts), 0, 0.0
    for character, colour, part in zip("█▓▒░", _COLOURS, parts, strict=True):
        total += part
        upto = math.ceil(BAR_WIDTH * total / whole - 1e-9) if whole > 0 else 0
        text.append(character * (upto - drawn), colour)
        drawn = upto
    return text


def keep_whole(page: RenderableType) -> None:
    """Break no name in a page's tables: their columns are as wide as their longest line, the same
    in all; the last one wraps between words.
    """
    tables = list(_tables(page))
    for columns in zip(*(table.columns for table in tables), strict=True):
        cells = list(chain.from_iterable((each.header, *each.cells) for each in columns))
        is_last = columns[0] is tables[0].columns[-1]
        for column in columns:
            column.ratio = None
            column.width = None if is_last else _longest(cells, str.splitlines)
            column.min_width = _longest(cells, str.split)


def width_of(page: RenderableType, console: Console) -> int:
    """The width that breaks no word of a page: the console's, or more where it takes more."""
    unbounded = console.options.update(width=_WIDEST)
    return max(console.width, Measurement.get(console, unbounded, page).minimum)


def plain(text: object, most: int = 2000) -> str:
    """Put text that others wrote on one line, without control characters."""
    line = " ".join(_CONTROLS.sub("", str(text)[: most * 4]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def rounded(amount: float) -> float:
    """Drop what binary fractions add: sums of 0.1 stay what was written."""
    return round(amount, 6)


def short(resource: str, amount: float) -> str:
    """Write an amount with its unit: `2.5` or `500m` CPUs, `64G` of memory, `0.25` GPUs."""
    if amount == UNLIMITED:
        return "unlimited"
    if resource == "gpu":
        return _two_digits(amount)
    if resource == "cpu":
        return f"{amount:.0f}m" if 0 < amount < 1000 else _two_digits(amount / 1000)
    for size, unit in ((10**6, "T"), (10**3, "G")):
        if amount >= size:
            return f"{_two_digits(amount / size)}{unit}"
    return f"{_two_digits(amount)}M" if amount else "0"


def in_words(resource: str, amount: float) -> str:
    """Write an amount for a sentence: `4 GPUs`, `1 GPU`, `2.5 CPUs`, `64G of memory`."""
    text = short(resource, amount)
    if resource == "memory":
        return f"{text} of memory"
    return f"{text} {resource.upper()}{'' if text == '1' else 's'}"


def camel(record: Mapping[str, Any]) -> dict[str, Any]:
    """Spell the keys of a record as JSON has them: `in_use` is `inUse`."""
    return {re.sub("_(.)", lambda match: match[1].upper(), key): record[key] for key in record}


def counted(number: int, noun: str, singular: str = "", plural: str = "") -> str:
    """Write a number with its noun and verb: `1 pod waits`, `3 pods wait`."""
    words = (str(number), noun, singular) if number == 1 else (str(number), f"{noun}s", plural)
    return " ".join(filter(None, words))


def listed(names: Sequence[str], most: int = 6) -> str:
    """Write names for a sentence: `a, b or c`; of many, the first ones and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])}, … ({len(names) - most} more)"
    return " or ".join(filter(None, (", ".join(names[:-1]), "".join(names[-1:]))))


def _tables(page: RenderableType) -> Iterator[Table]:
    if isinstance(page, Table):
        yield page
    for part in page.renderables if isinstance(page, Group) else ():
        yield from _tables(part)


def _longest(cells: Iterable[object], split: Callable[[str], list[str]]) -> int:
    parts = chain.from_iterable(split(str(cell)) for cell in cells)
    return max(map(cell_len, parts), default=0)


def _two_digits(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
