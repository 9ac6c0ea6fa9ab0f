"""Secrets of the stack file that are part of a larger value, kept secret where they go (P6)."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import pulumi
from pulumi.runtime import config

from kai_fleet.settings.mistakes import NAMESPACE

# The keys of the stack file below which a user gives charts values of their own.
_WITH_VALUES: Final = ("teams", "team", "vcluster", "kai", "gpu")

_HIDDEN: Final[ContextVar[bool]] = ContextVar("hidden", default=False)


def hide_values() -> None:
    """Have all values hidden in what is declared from here on: a part of the settings is secret."""
    _HIDDEN.set(True)


def hidden(values: Mapping[str, Any]) -> dict[str, Any]:
    """A user's values for a chart, every text in them secret if the stack file has secrets there.

    Pulumi tells of a key such as `kai-fleet:teams` only that some part of it is encrypted, not
    which; so no text of theirs is shown then. Numbers and switches stay readable.
    """
    encrypted = any(config.is_config_secret(f"{NAMESPACE}:{key}") for key in _WITH_VALUES)
    if not encrypted and not _HIDDEN.get():
        return dict(values)
    return {key: _hidden(value) for key, value in values.items()}


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _hidden(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    return pulumi.Output.secret(value) if isinstance(value, str) else value
