"""The command `fleet`; `plan_settings` plans without an engine or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kai_fleet_cli.plan.offline import plan_settings as plan_settings

__all__ = ["plan_settings"]


def __getattr__(name: str) -> object:
    """Import `plan_settings` on first use. Raises AttributeError for any other name.

    The import takes a second. Ctrl-C in it has to end `fleet` with one word, and `__main__` sees to
    that only after this package is imported.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kai_fleet_cli.plan.offline import plan_settings

    return plan_settings
