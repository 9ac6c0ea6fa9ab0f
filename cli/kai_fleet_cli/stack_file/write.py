"""Write files whole or not at all, and take an edit back."""

import difflib
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kai_fleet_cli.errors import UserError

_MODE: Final = 0o644


@dataclass(frozen=True)
class Edit:
    """One file before and after."""

    path: Path
    before: str
    after: str

    def lines(self) -> list[str]:
        """The lines that change, each behind `-` or `+`."""
        old, new = self.before.splitlines(), self.after.splitlines()
        diff = difflib.unified_diff(old, new, n=0, lineterm="")
        return [line for line in diff if not line.startswith(("---", "+++", "@@"))]

    def write(self) -> None:
        """Write the file. Raises UserError where it is not as it was read, or is read-only."""
        if read_text(self.path) != self.before:
            raise UserError(
                f"{self.path.name} was changed by something else meanwhile; nothing is written,"
                " run the command again"
            )
        try:
            put(self.path, self.after)
        except OSError as why:
            raise UserError(f"{self.path.name} cannot be written: {why.strerror}") from None

    def undo(self) -> bool:
        """Have the file as it was, unless something else has written it meanwhile: False then."""
        if read_text(self.path) != self.after:
            return False
        put(self.path, self.before)
        return True


def read_text(path: Path) -> str:
    """A file's text with its line ends as they are; "" where there is none."""
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def put(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file at once; without a mode it keeps the one that it has. Raises OSError."""
    target = Path(os.path.realpath(path))  # a link stays a link
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
    """Put Ctrl-C and SIGTERM off until what is inside is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
