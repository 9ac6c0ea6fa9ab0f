"""Write files atomically, and undo an edit."""

import difflib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kai_fleet_cli.errors import UserError

_MODE: Final = 0o644


@dataclass(frozen=True)
class Edit:
    """An edit of a file: its text before and after."""

    path: Path
    before: str
    after: str

    def lines(self) -> list[str]:
        """The lines that change, each behind `-` or `+`."""
        old, new = self.before.splitlines(), self.after.splitlines()
        diff = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
        return [line for line in diff if not line.startswith("@@")]

    def write(self) -> None:
        """Write the file. Raises UserError where it is not as it was read, or is read-only."""
        name = self.path.name
        if self.path.read_bytes().decode() != self.before:
            raise UserError(f"{name} was changed by something else; run the command again")
        try:
            put(self.path, self.after)
        except OSError as why:
            raise UserError(f"{name} cannot be written: {why.strerror}") from None

    def undo(self) -> bool:
        """Restore the file; False, and no change, where something else has written it meanwhile."""
        unchanged = self.path.read_bytes().decode() == self.after
        if unchanged:
            put(self.path, self.before)
        return unchanged


def put(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file atomically; without a mode it keeps the one that it has. Raises OSError."""
    target = Path(os.path.realpath(path))  # a link stays a link
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else _MODE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            os.fchmod(out.fileno(), mode)
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
