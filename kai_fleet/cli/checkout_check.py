"""A checkout's `fleet` runs that checkout's code."""

from __future__ import annotations

from pathlib import Path

import kai_fleet
from kai_fleet.cli.errors import UserError


def check(script: str) -> None:
    """Raises UserError where `script`, a checkout's `.venv/bin/fleet`, imports another checkout.

    PYTHONPATH does that: the sandbox and the program would be those of the other checkout, for the
    stack files of this one.
    """
    called = Path(script).absolute()
    checkout = called.parents[2] if called.parent.parent.name == ".venv" else None
    imported = Path(kai_fleet.__file__).resolve().parents[1]
    if checkout is None or not (checkout / "kai_fleet").is_dir() or checkout.resolve() == imported:
        return
    raise UserError(
        f"{called} is of checkout {checkout}, but Python imports kai_fleet from {imported}:"
        " PYTHONPATH names it. Run: unset PYTHONPATH"
    )
