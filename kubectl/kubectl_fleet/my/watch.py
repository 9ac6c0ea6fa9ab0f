"""Looking once, or again and again: in place on a terminal, else whenever something changed."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubectl_fleet.errors import UserError
from kubectl_fleet.my.bars import ASCII, UNICODE, Glyphs
from kubectl_fleet.my.view import View

Look = Callable[[], View]
Show = Callable[[View, Glyphs], RenderableType]
Record = Callable[[View], dict[str, Any]]


def once(look: Look, show: Show) -> None:
    """One look."""
    console = Console(highlight=False)
    console.print(_page(look(), show, console))


def as_json(look: Look, record: Record, every: float | None) -> None:
    """One document; with `every`, one a line for each change."""
    if every is None:
        sys.stdout.write(json.dumps(record(look()), indent=2, ensure_ascii=False) + "\n")
        return
    for line in _changes(look, lambda view: json.dumps(record(view), ensure_ascii=False), every):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def until_stopped(look: Look, show: Show, every: float) -> None:
    """Until Ctrl-C. What the first look cannot see ends it, what a later one cannot is waited for.

    Raises UserError.
    """
    console = Console(highlight=False)

    def text(view: View) -> str:
        with console.capture() as captured:
            console.print(_page(view, show, console))
        return captured.get()

    if not console.is_terminal:
        for page in _changes(look, text, every):
            console.print(page, markup=False, highlight=False, end="\n", soft_wrap=True)
            console.file.flush()
        return
    shown = _page(look(), show, console)
    with Live(shown, console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.refresh()
        while True:
            time.sleep(every)
            try:
                shown = _page(look(), show, console)
                live.update(shown, refresh=True)
            except UserError as error:
                note = Text(f"{error}; what stands above is from before", "yellow")
                live.update(Group(shown, note), refresh=True)


def _changes(look: Look, text: Callable[[View], str], every: float) -> Iterator[str]:
    """The text of the first look, and of each that differs from the one before."""
    before = text(look())
    yield before
    while True:
        time.sleep(every)
        try:
            now = text(look())
        except UserError as error:
            sys.stderr.write(f"{error}; trying again\n")
            continue
        if now != before:
            yield now
        before = now


def _page(view: View, show: Show, console: Console) -> RenderableType:
    glyphs = ASCII if console.options.ascii_only else UNICODE
    notes = [Text(f"note: {note}", "yellow") for note in view.notes]
    return Group(show(view, glyphs), *notes)
