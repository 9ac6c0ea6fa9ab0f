"""What only a checkout has, and no wheel: the sandbox; and whose checkout a command runs from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import kai_fleet
from kai_fleet.settings.files.project import CHECKOUT
from kubectl_fleet.errors import UserError

if TYPE_CHECKING:
    from sandbox.lifecycle import Sandbox


def require_same(script: str) -> None:
    """Raise UserError where `script`, a checkout's `.venv/bin/fleet`, imports another checkout.

    PYTHONPATH does that, or a `.venv` that was copied with its checkout: the sandbox and the
    program would be those of the other checkout, for the stack files of this one.
    """
    called = Path(script).absolute()
    checkout = called.parents[2] if called.parent.parent.name == ".venv" else None
    imported = Path(kai_fleet.__file__).resolve().parents[2]
    if checkout is None or not (checkout / "components").is_dir() or checkout.resolve() == imported:
        return
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(Path(folder).resolve().is_relative_to(imported) for folder in named if folder):
        remedy = "PYTHONPATH names it. Run: unset PYTHONPATH"
    else:
        remedy = f"{checkout / '.venv'} is that checkout's. Run: rm -rf .venv && make setup"
    raise UserError(
        f"{called} is of checkout {checkout}, but Python imports kai_fleet from {imported}:"
        f" {remedy}"
    )


def require_sandbox() -> None:
    """Raise UserError where there is no sandbox, because kai-fleet was installed from wheels."""
    if CHECKOUT is None:
        raise UserError(
            "the sandbox needs a checkout, and kai-fleet is installed here without one:"
            " git clone … kai-fleet && cd kai-fleet, then: make up"
        )


def running_sandbox() -> Sandbox:
    """The sandbox. Raises UserError where it is not running, or there is none."""
    require_sandbox()
    from sandbox import lifecycle

    if (running := lifecycle.find()) is None:
        raise UserError("the sandbox is not running; start it with: make up")
    return running
