"""Show a command once or repeatedly: in place on a terminal, else each time that it changed."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubectl_fleet.cluster import Cluster
from kubectl_fleet.kubeconfig import UserError
from kubectl_fleet.table import keep_whole, width_of
from kubectl_fleet.tree import Usage

# Errors that reading a malformed object may raise.
_MALFORMED = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    RecursionError,
)


@dataclass(frozen=True)
class Command:
    """A command of the plugin.

    `help` says what it shows, `kinds` are the plurals of the objects that it reads, of
    `cluster.REASONS`. `record` gives its JSON, `show` its page; both may raise `_MALFORMED`.
    """

    help: str
    kinds: Sequence[str]
    record: Callable[[Usage], dict[str, object]]
    show: Callable[[Usage], RenderableType]


def run(
    cluster: Cluster,
    command: Command,
    every_seconds: float | None,
    *,
    as_json: bool,
) -> None:
    """Print what a command shows; with `every_seconds`, again after so many, until Ctrl-C.

    None or 0 seconds: once. On a terminal the page is drawn in place. Elsewhere, and as JSON, it is
    printed again only if it changed; the JSON is then one line. A repeated reading that fails is
    tried again.

    Raises:
        UserError: The first reading fails.
        KeyboardInterrupt: Ctrl-C, the only end of a repeated one on a terminal.
        BrokenPipeError: Nobody reads stdout any more.
    """
    console = Console(highlight=False)

    def page() -> RenderableType:
        return _page(cluster, command)

    def text() -> str:
        """Read the cluster; the page as text, with a blank line below if it is repeated."""
        blank_line = "\n" if every_seconds else ""
        return _as_text(page()) + blank_line

    def document() -> str:
        """Read the cluster; its JSON, on one line if it is repeated."""
        indent = None if every_seconds else 2
        return _document(cluster, command, indent)

    if every_seconds and console.is_terminal and not as_json:
        _show_in_place(page, console, every_seconds)
    for changed in _changes(document if as_json else text, every_seconds):
        sys.stdout.write(changed)
        sys.stdout.flush()


def _page(cluster: Cluster, command: Command) -> RenderableType:
    """Read the cluster; what the command shows, and notes below. Raises UserError."""
    with _malformed_in_words():
        usage = Usage(cluster.read(command.kinds))
        notes = [Text(f"note: {note}", "yellow") for note in usage.notes]
        return Group(command.show(usage), *notes)


def _as_text(page: RenderableType) -> str:
    """A page as the console prints it, in which no name is broken: lines may be wider than it is.

    Changes the tables of the page.
    """
    console = Console(highlight=False)
    keep_whole(page)
    console.width = width_of(page, console)
    with console.capture() as captured:
        console.print(page, crop=False)
    return captured.get()


def _document(cluster: Cluster, command: Command, indent: int | None) -> str:
    """Read the cluster; the command's JSON, ending in a newline. Raises UserError.

    The keys of all commands are before those of this one: `namespace`, None if pods of all are
    shown; `kai`, its version or None; `notes`; and `countedFrom`, whether `pods` or the `status` of
    Queues say what queues hold. `indent` is in spaces, None for one line.
    """
    with _malformed_in_words():
        usage = Usage(cluster.read(command.kinds))
        view = usage.snapshot
        record: dict[str, object] = {
            "namespace": view.shown_namespace,
            "kai": usage.version,
            "notes": list(usage.notes),
            "countedFrom": "status" if view.pods_of_one_namespace else "pods",
            **command.record(usage),
        }
        return json.dumps(record, indent=indent, ensure_ascii=False) + "\n"


@contextmanager
def _malformed_in_words() -> Iterator[None]:
    """Raise UserError in place of `_MALFORMED`: a server may answer objects that cannot be read."""
    try:
        yield
    except _MALFORMED as error:
        about = type(error).__name__
        raise UserError(
            f"the cluster can't be shown: it answers what no Kubernetes does ({about})"
        ) from None


def _show_in_place(
    page: Callable[[], RenderableType],
    console: Console,
    every_seconds: float,
) -> None:
    """Draw a page in place again and again. It ends only with an exception, as Ctrl-C raises one.

    Raises UserError if the first reading fails; later failures are a note below the last page.
    """
    shown = page()
    with Live(
        shown,
        console=console,
        auto_refresh=False,
        vertical_overflow="ellipsis",
    ) as live:
        live.refresh()
        while True:
            time.sleep(every_seconds)
            try:
                shown = page()
                live.update(shown, refresh=True)
            except UserError as error:
                note = Text(f"{error}; what stands above is from before", "yellow")
                live.update(Group(shown, note), refresh=True)


def _changes(text: Callable[[], str], every_seconds: float | None) -> Iterator[str]:
    """The first text, and with `every_seconds`, without end, each that differs from the one before.

    Raises UserError if the first reading fails; later failures are printed on stderr, and change
    nothing.
    """
    before = text()
    yield before
    while every_seconds:
        time.sleep(every_seconds)
        try:
            now = text()
        except UserError as error:
            sys.stderr.write(f"{error}; trying again\n")
            continue
        if now != before:
            yield now
        before = now
