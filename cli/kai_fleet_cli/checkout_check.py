"""A checkout's `fleet` runs that checkout's code."""

from __future__ import annotations

import os
from pathlib import Path

import kai_fleet
from kai_fleet_cli.errors import UserError


def check(script: str) -> None:
    """Raises UserError where `script`, a checkout's `.venv/bin/fleet`, imports another checkout.

    PYTHONPATH does that, or a `.venv` that was copied with its checkout: the sandbox and the
    program would be those of the other checkout, for the stack files of this one.
    """
    called = Path(script).absolute()
    checkout = called.parents[2] if called.parent.parent.name == ".venv" else None
    imported = Path(kai_fleet.__file__).resolve().parents[2]
    if checkout is None or not (checkout / "components").is_dir() or checkout.resolve() == imported:
        return
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if imported in {Path(folder).resolve() for folder in named if folder}:
        remedy = "PYTHONPATH names it. Run: unset PYTHONPATH"
    else:
        remedy = f"{checkout / '.venv'} is that checkout's. Run: rm -rf .venv && make setup"
    raise UserError(
        f"{called} is of checkout {checkout}, but Python imports kai_fleet from {imported}:"
        f" {remedy}"
    )
