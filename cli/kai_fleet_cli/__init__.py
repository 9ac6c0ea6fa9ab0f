"""The command `fleet`; `plan_settings` plans without an engine or a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kai_fleet_cli.errors import excepthook

if TYPE_CHECKING:
    from kai_fleet_cli.plan.offline import plan_settings as plan_settings

__all__ = ["plan_settings"]


def __getattr__(name: str) -> Any:
    """Import the planner on first use: it would slow down every command."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kai_fleet_cli.plan import offline

    return getattr(offline, name)


sys.excepthook = excepthook
