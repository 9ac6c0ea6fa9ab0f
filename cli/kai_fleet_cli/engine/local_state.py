"""Where a kind stack's state is kept by people who are logged in nowhere: on the same machine."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

import platformdirs

_LOGGED_IN_BY: Final = ("PULUMI_ACCESS_TOKEN", "PULUMI_BACKEND_URL")
_PASSPHRASES: Final = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def variables(say: Callable[[str], None]) -> dict[str, str]:
    """The engine's variables for a state of its own; {} where there is a Pulumi login.

    The state goes to the user's data folder, its secrets under a passphrase made at first use and
    kept beside it, readable by the user alone: what they protect is a cluster on this machine.
    """
    if any(os.environ.get(name) for name in _LOGGED_IN_BY) or _current_login():
        return {}
    folder = platformdirs.user_data_path("kai-fleet") / "kind"
    state = folder / "state"
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    say(f"no Pulumi login here: the state is kept in {folder}")
    found = {"PULUMI_BACKEND_URL": f"file://{state}"}
    if not any(name in os.environ for name in _PASSPHRASES):
        found["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase(folder / "passphrase"))
    return found


def _current_login() -> str:
    """The backend that `pulumi login` chose; "" for none."""
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    try:
        chosen = json.loads((home / "credentials.json").read_text(encoding="utf-8"))
        return str(chosen.get("current") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def _passphrase(file: Path) -> Path:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(32), encoding="utf-8")
    return file
