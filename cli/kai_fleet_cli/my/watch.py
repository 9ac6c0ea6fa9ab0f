"""Looking once, or again and again: in place on a terminal, else whenever something changed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.my.bars import ASCII, INK, Ink
from kai_fleet_cli.my.view import View

Show = Callable[[View, Ink], RenderableType]
Record = Callable[[View], dict[str, Any]]


def once(look: Callable[[], View], show: Show, console: Console) -> None:
    """One look."""
    console.print(_page(look(), show, console))


def as_json(look: Callable[[], View], record: Record, every: float | None) -> None:
    """One document; with `every`, one a line for each change."""
    if every is None:
        sys.stdout.write(json.dumps(record(look()), indent=2, ensure_ascii=False) + "\n")
        return
    before = ""
    for view in _again(look, every):
        now = json.dumps(record(view), ensure_ascii=False)
        if now != before:
            sys.stdout.write(now + "\n")
            sys.stdout.flush()
        before = now


def until_stopped(look: Callable[[], View], show: Show, console: Console, every: float) -> None:
    """Until Ctrl-C. What the first look cannot see ends it, what a later one cannot is waited for.

    Raises UserError.
    """
    if not console.is_terminal:
        _when_changed(look, show, console, every)
        return
    page = _page(look(), show, console)
    with Live(page, console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.refresh()
        while True:
            time.sleep(every)
            try:
                page = _page(look(), show, console)
                live.update(page, refresh=True)
            except UserError as why:
                note = Text(f"{why}; what stands above is from before", "yellow")
                live.update(Group(page, note), refresh=True)


def _when_changed(look: Callable[[], View], show: Show, console: Console, every: float) -> None:
    before = ""
    for view in _again(look, every):
        with console.capture() as captured:
            console.print(_page(view, show, console))
        now = captured.get()
        if now != before:
            console.print(now, markup=False, highlight=False, end="\n", soft_wrap=True)
            console.file.flush()
        before = now


def _again(look: Callable[[], View], every: float) -> Iterator[View]:
    yield look()
    while True:
        time.sleep(every)
        try:
            yield look()
        except UserError as why:
            sys.stderr.write(f"{why}; trying again\n")


def _page(view: View, show: Show, console: Console) -> RenderableType:
    ink = ASCII if console.options.ascii_only else INK
    notes = [Text(f"note: {note}", "yellow") for note in view.notes]
    return Group(show(view, ink), *notes)
