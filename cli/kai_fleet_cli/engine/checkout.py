"""What only a checkout has: the sandbox, and tools that are fetched or built. No wheel has them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import kai_fleet
from kai_fleet.settings.files.project import CHECKOUT
from kai_fleet_cli.display.screen import say
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


def pulumi_cli() -> Path:
    """Pulumi's CLI: of PATH, else one that a checkout fetches or builds. Raises UserError."""
    if CHECKOUT is None:
        if (installed := shutil.which("pulumi")) is None:
            raise UserError(
                "Pulumi's CLI is not on PATH; install it: https://www.pulumi.com/docs/install/"
            )
        return Path(installed)
    from sandbox.tools import toolbox

    try:
        return toolbox.ensure(("pulumi",), say)["pulumi"].path
    except toolbox.ToolError as why:
        raise UserError(str(why)) from None
