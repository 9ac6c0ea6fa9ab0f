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


def run(look: Look, show: Show, record: Record, every: float | None, *, as_json: bool) -> None:
    """Print a look; with `every`, one after so many seconds again, until Ctrl-C.

    As JSON that is a document, or one a line for each change. What the first look cannot see ends
    it, what a later one cannot is waited for. Raises UserError.
    """
    console = Console(highlight=False)

    def page(view: View) -> RenderableType:
        glyphs = ASCII if console.options.ascii_only else UNICODE
        notes = [Text(f"note: {note}", "yellow") for note in view.notes]
        return Group(show(view, glyphs), *notes)

    def text(view: View) -> str:
        if as_json:
            whole, indent = {**view.record(), **record(view)}, 2 if every is None else None
            return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"
        with console.capture() as captured:
            console.print(page(view))
        return captured.get()

    if every is None:
        sys.stdout.write(text(look()))
    elif as_json or not console.is_terminal:
        for changed in _changes(look, text, every):
            sys.stdout.write(changed if as_json else f"{changed}\n")
            sys.stdout.flush()
    else:
        _in_place(look, page, console, every)


def _in_place(
    look: Look, page: Callable[[View], RenderableType], console: Console, every: float
) -> None:
    shown = page(look())
    with Live(shown, console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.refresh()
        while True:
            time.sleep(every)
            try:
                shown = page(look())
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
