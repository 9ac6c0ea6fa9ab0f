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
        values: by key, without the prefix, parsed and decrypted.
        decrypted: keys, without the prefix, with encrypted values in them, which the engine has
            decrypted.
        mistakes: what `misspelt` finds among the keys of all namespaces.
    """

    values: dict[str, Any]
    decrypted: frozenset[str]
    mistakes: list[Finding]


def read_config() -> RunningConfig:
    """Read the Pulumi configuration of the running program; empty if it has none.

    What `pulumi.runtime` was given, as by tests, counts before the environment.
    """
    raw = pulumi_config.CONFIG.get() or pulumi_config.get_config_env()
    secret_keys = set(pulumi_config.get_config_secret_keys_env())
    secret_keys.update(filter(pulumi_config.is_config_secret, raw))
    decrypted = own_keys(dict.fromkeys(secret_keys))
    return RunningConfig(values_of_config(raw), frozenset(decrypted), misspelt(raw))


def values_of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `kai-fleet:` keys of a configuration, without the prefix, with parsed values.

    `config` is as the engine gives it to programs and packs: JSON by key with its namespace.
    """
    return {key: _parsed(value) for key, value in own_keys(config).items()}


def _parsed(value: Any) -> Any:
    """The value in a JSON text; other texts and values unchanged.

    The engine does not tell the text `12` from a number: it is one here, and `null` is None.
    """
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
