"""Show a command once, or again and again: in place on a terminal, else whenever it changed."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubectl_fleet.cluster import Cluster
from kubectl_fleet.gpu import kai_version
from kubectl_fleet.kubeconfig import UserError
from kubectl_fleet.table import keep_whole, width_of
from kubectl_fleet.tree import Usage

# What reading a malformed object may raise.
_MALFORMED: Final = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError),
    RecursionError,
)


def run(cluster: Cluster, command: ModuleType, every: float | None, *, as_json: bool) -> None:
    """Print what a command shows; with `every`, again after so many seconds, until Ctrl-C.

    As JSON that is a document, or one a line for each change. A first reading that fails ends it,
    a later one is tried again. Raises UserError.
    """
    console, ordinary = Console(highlight=False), Console(highlight=False)

    @_in_words()
    def page() -> RenderableType:
        usage = Usage(cluster.read(command.KINDS))
        notes = [Text(f"note: {note}", "yellow") for note in usage.notes]
        return Group(command.show(usage), *notes)

    def text() -> str:
        shown = page()
        keep_whole(shown)
        console.width = width_of(shown, ordinary)
        with console.capture() as captured:
            console.print(shown, crop=False)
        return captured.get() + ("\n" if every else "")

    @_in_words()
    def document() -> str:
        usage = Usage(cluster.read(command.KINDS))
        view = usage.snapshot
        about = {"namespace": view.shown, "kai": kai_version(view), "notes": usage.notes}
        about["countedFrom"] = "status" if view.partly else "pods"
        indent = None if every else 2
        return json.dumps(about | command.record(usage), indent=indent, ensure_ascii=False) + "\n"

    if every and console.is_terminal and not as_json:
        _in_place(page, console, every)
    for changed in _changes(document if as_json else text, every):
        sys.stdout.write(changed)
        sys.stdout.flush()


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise UserError for objects that no Kubernetes has: a server may answer any."""
    try:
        yield
    except _MALFORMED as error:
        about = type(error).__name__
        raise UserError(
            f"the cluster can't be shown: it answers what no Kubernetes does ({about})"
        ) from None


def _in_place(page: Callable[[], RenderableType], console: Console, every: float) -> None:
    shown = page()
    with Live(shown, console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        live.refresh()
        while True:
            time.sleep(every)
            try:
                shown = page()
                live.update(shown, refresh=True)
            except UserError as error:
                note = Text(f"{error}; what stands above is from before", "yellow")
                live.update(Group(shown, note), refresh=True)


def _changes(text: Callable[[], str], every: float | None) -> Iterator[str]:
    """Return the first text, and each that differs from the one before."""
    before = text()
    yield before
    while every:
        time.sleep(every)
        try:
            now = text()
        except UserError as error:
            sys.stderr.write(f"{error}; trying again\n")
            continue
        if now != before:
            yield now
        before = now
