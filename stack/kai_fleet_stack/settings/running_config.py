"""The configuration of the running program, as the engine gives it."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pulumi.runtime import config as pulumi_config

from kai_fleet_policies.finding import Finding
from kai_fleet_stack.settings.mistakes import misspelt, own_keys


class RunningConfig(NamedTuple):
    """The `kai-fleet:` keys of the running program.

    Args:
        values: by key, without the prefix.
        decrypted: keys with encrypted values in them, which the engine has decrypted.
        mistakes: keys that look like misspelt ones.
    """

    values: dict[str, Any]
    decrypted: frozenset[str]
    mistakes: list[Finding]


def read_config() -> RunningConfig:
    """Read the Pulumi configuration of the running program."""
    raw = pulumi_config.CONFIG.get() or pulumi_config.get_config_env()
    secret_keys = set(pulumi_config.get_config_secret_keys_env())
    secret_keys.update(filter(pulumi_config.is_config_secret, raw))
    decrypted = own_keys(dict.fromkeys(secret_keys))
    values = values_of_config(raw)
    return RunningConfig(values, frozenset(decrypted), misspelt(raw))


def values_of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` keys of a configuration as the engine gives it to programs and packs."""
    return {key: _parsed(value) for key, value in own_keys(config).items()}


def _parsed(value: Any) -> Any:
    """The value in a JSON text, a number for `12`; other texts and values unchanged."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
