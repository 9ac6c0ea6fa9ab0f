"""The files of backups, and the file of the key that encrypts them."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyrage
from pyrage.x25519 import Identity

from kai_fleet_cli.backups.backup import Backup, is_encrypted, packed, unpacked
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import write_atomically

KEY = "KAI_FLEET_BACKUP_KEY"
# The file of the key, for commands without an option for it, too.
KEY_FILE = Path(os.environ.get(KEY) or "~/.config/kai-fleet/backup.key")


def taken_now(folder: Path, name: str) -> Path:
    """The file of a backup that is taken now: its name has the time, so none takes its place."""
    return folder / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}.backup"


def write(taken: Backup, file: Path, key: Path) -> None:
    """Write a backup into a file that only you can read; a key that is missing is made.

    Raises UserError if a file cannot be written, or the key's has no key.
    """
    _write_private(file, packed(taken, _identity(key, makes=True)))


def read(team: str, source: Path, key: Path) -> Backup:
    """A team's backup in a file, or in `TEAM.backup` of a folder.

    Raises UserError if it cannot be read, is no whole backup, or is another team's.
    """
    file = source / f"{team}.backup" if source.is_dir() else source
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    identity = _identity(key, makes=False) if is_encrypted(data) else None
    taken = unpacked(data, str(file), identity)
    if taken.record["team"] != team:
        raise UserError(f"{file} is a backup of team {taken.record['team']}, not of {team}")
    return taken


def _identity(key: Path, *, makes: bool) -> Identity:
    """The key in a file, in the format of age. With `makes` a file that is missing is made.

    Raises UserError if it cannot be read or made, or has no key.
    """
    file = key.expanduser()
    if makes and not file.exists():
        _write_private(file, f"{Identity.generate()}\n".encode())
        say(
            f"{file} is a new key. Keep a copy where the loss of this machine does not reach it:"
            " without it nobody reads a backup"
        )
    try:
        lines = file.read_text().split()
        (line,) = [each for each in lines if each.startswith("AGE-SECRET-KEY")]
        return Identity.from_str(line)
    except (OSError, ValueError, pyrage.IdentityError) as error:
        raise UserError(
            f"{file} is no key of a backup: {error}; give the file of the key with which it was"
            f" made, by --key or {KEY}"
        ) from None


def _write_private(file: Path, content: bytes) -> None:
    """Write all of a file that only you can read, or nothing, and make its folder.

    Raises UserError if it cannot be written.
    """
    with suppress(OSError):  # the next line says what is wrong with the folder
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(file, content, 0o600)
