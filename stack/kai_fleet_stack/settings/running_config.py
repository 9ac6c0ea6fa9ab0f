"""The configuration of the running program, as the engine gives it."""

import json
from collections.abc import Mapping
from typing import Any

from pulumi.runtime import config as pulumi_config

from kai_fleet_policies.finding import Finding
from kai_fleet_stack.settings.mistakes import misspelt, own_keys


def read_config() -> tuple[dict[str, Any], frozenset[str], list[Finding]]:
    """Read the Pulumi configuration of the running program.

    Returns:
        The values of the `kai-fleet:` keys, those of these keys that have encrypted values in them,
        and mistakes for keys that look like misspelt ones.
    """
    raw = pulumi_config.CONFIG.get() or pulumi_config.get_config_env()
    secret_keys = set(pulumi_config.get_config_secret_keys_env())
    secret_keys.update(filter(pulumi_config.is_config_secret, raw))
    decrypted = own_keys(dict.fromkeys(secret_keys))
    return values_of_config(raw), frozenset(decrypted), misspelt(raw)


def values_of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` keys of a configuration as the engine gives it to programs and packs."""
    return {key: _parsed(value) for key, value in own_keys(config).items()}


def _parsed(value: Any) -> Any:
    """The value in a JSON text; a text that is no JSON, and any other value, unchanged."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
