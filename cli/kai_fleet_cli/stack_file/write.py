"""Writing stack files: all of one or nothing of it, and back to what they were if need be."""

import difflib
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kai_fleet_cli.errors import UserError

_MODE: Final = 0o644


class NotWrittenError(UserError):
    """A file is not as it was read, or cannot be written; all files are as they were."""


@dataclass(frozen=True)
class Edit:
    """One file before and after; None where there is no file."""

    path: Path
    before: str | None
    after: str | None

    def lines(self) -> list[str]:
        """The lines that change, as in `diff -U0`: for people, before anything is written."""
        old = (self.before or "").splitlines()
        new = (self.after or "").splitlines()
        diff = difflib.unified_diff(old, new, n=0, lineterm="")
        return [line for line in diff if not line.startswith(("---", "+++", "@@"))]


def read_text(path: Path) -> str:
    """A file's text with its line ends as they are. Raises OSError, UnicodeDecodeError."""
    return path.read_bytes().decode("utf-8")


def write(edits: Sequence[Edit]) -> None:
    """Make every file as its edit says; raises NotWrittenError where one is not as it was read.

    What was written before a failure is put back.
    """
    done: list[Edit] = []
    with undisturbed():
        for edit in edits:
            try:
                if _now(edit.path) != edit.before:
                    raise NotWrittenError(
                        f"{edit.path.name} was changed by something else meanwhile; nothing is"
                        " written, run the command again"
                    )
                put(edit.path, edit.after)
            except (UserError, OSError) as why:
                for earlier in reversed(done):
                    put(earlier.path, earlier.before)
                if isinstance(why, OSError):
                    reason = why.strerror or str(why)
                    raise NotWrittenError(f"{edit.path.name} cannot be written: {reason}") from None
                raise
            done.append(edit)


def restore(edits: Sequence[Edit]) -> list[str]:
    """Every file as it was before, byte for byte; but not one that was written meanwhile.

    Returns the names of those, which stay as they are.
    """
    others = []
    with undisturbed():
        for edit in reversed(edits):
            if (now := _now(edit.path)) == edit.after:
                put(edit.path, edit.before)
            elif now != edit.before:
                others.append(edit.path.name)
    return others


def put(path: Path, text: str | None, mode: int | None = None) -> None:
    """Replace a file at once, or remove it (None). Raises OSError.

    Without a mode it keeps the one that it has.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    if text is None:
        target.unlink(missing_ok=True)
        return
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else _MODE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            os.fchmod(out.fileno(), mode)
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put Ctrl-C and SIGTERM off until the files are whole."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _now(path: Path) -> str | None:
    try:
        return read_text(path)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""  # not what was read before, whatever that was
