"""Bars of the tables, tables and pages in which no name is broken, and keys of the JSON."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

BAR_WIDTH = 10
_UNBOUNDED_WIDTH = 100_000
# Of the parts of a bar: within the quota, borrowed, lent, free.
_CHARACTERS = "█▓▒░"
_COLOURS = ("green", "yellow", "cyan", "dim")
_ROUNDING_ERROR = 1e-9  # of characters


def bar(parts: Sequence[float]) -> Text:
    """Draw what is used within a quota, borrowed, lent and free, in this order of the parts.

    They fill BAR_WIDTH characters in proportion. The end of each is rounded up, so that a small
    part after another may have no character. If all are 0, the text is empty. The parts are in one
    unit, and none is negative. Raises ValueError if they are not four, unless all are 0.
    """
    text = Text()
    length = sum(parts)
    if length <= 0:
        return text
    drawn = 0
    amount_so_far = 0.0
    for character, colour, part in zip(_CHARACTERS, _COLOURS, parts, strict=True):
        amount_so_far += part
        end = math.ceil(BAR_WIDTH * amount_so_far / length - _ROUNDING_ERROR)
        text.append(character * (end - drawn), colour)
        drawn = end
    return text


def keep_whole(page: RenderableType) -> None:
    """Change the tables of a page so that no name in them is broken.

    Columns become as wide as their longest line, the same in all tables. The last column may be
    broken between words. Raises ValueError if tables differ in their number of columns.
    """
    tables = list(_tables(page))
    for columns in zip(*(table.columns for table in tables), strict=True):
        cells = list[object]()
        for column in columns:
            cells += [column.header, *column.cells]
        is_last = columns[0] is tables[0].columns[-1]
        for column in columns:
            column.ratio = None
            column.width = None if is_last else _longest(cells, str.splitlines)
            column.min_width = _longest(cells, str.split)


def width_of(page: RenderableType, console: Console) -> int:
    """The width in columns that breaks no word of a page: that of the console, or more."""
    unbounded = console.options.update(width=_UNBOUNDED_WIDTH)
    return max(console.width, Measurement.get(console, unbounded, page).minimum)


def camel(record: Mapping[str, object]) -> dict[str, object]:
    """A record with its keys in the spelling of JSON: `in_use` becomes `inUse`.

    Keys of mappings in it stay as they are.
    """
    camel_case = {}
    for key, value in record.items():
        first, *others = key.split("_")
        camel_case[first + "".join(map(str.capitalize, others))] = value
    return camel_case


def _tables(page: RenderableType) -> Iterator[Table]:
    """The tables of a page in their order: itself, or those in a Group, also in nested ones."""
    if isinstance(page, Table):
        yield page
    elif isinstance(page, Group):
        for part in page.renderables:
            yield from _tables(part)


def _longest(cells: Iterable[object], split: Callable[[str], list[str]]) -> int:
    """The width of the longest piece of these cells, in columns of a terminal; 0 without any.

    `split` gives the pieces of a cell's text: its lines, or its words.
    """
    pieces = chain.from_iterable(split(str(cell)) for cell in cells)
    return max(map(cell_len, pieces), default=0)
