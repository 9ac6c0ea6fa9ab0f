"""The command `fleet`; `plan_settings` plans without an engine or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kai_fleet_cli.plan.offline import plan_settings as plan_settings

__all__ = ["plan_settings"]


def __getattr__(name: str) -> object:
    """Import the planner on first use. It takes a second, in which Ctrl-C has to end `fleet` with
    one word: `__main__` sees to that only after this package is imported.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kai_fleet_cli.plan.offline import plan_settings

    return plan_settings
