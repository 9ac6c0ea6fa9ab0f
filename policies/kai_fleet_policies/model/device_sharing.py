"""How a device plugin shares GPUs, by the values of its chart or of the operator's.

Source: the plugin's `sharing` section, `timeSlicing` or `mps` with `resources`, each with
`replicas`; the charts' `config` and `devicePlugin.config`.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import yaml

from kai_fleet.values import UNKNOWN, Maybe, get, items, pairs

# "" is not at all.
DeviceSharing = Literal["", "time-slicing", "MPS", "a ConfigMap of others"]
OF_OTHERS: DeviceSharing = "a ConfigMap of others"
_WAYS: Mapping[str, DeviceSharing] = {"timeSlicing": "time-slicing", "mps": "MPS"}
# From these keys the charts write a ConfigMap; without them `name` is that of an existing one.
_CONTENT_KEYS = ("map", "data")
# What PyYAML raises for a text that is no YAML, a date that does not exist (2024-13-45), and a tag
# such as `!!int` on another value.
_NO_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError)


def device_sharing(values: object) -> Maybe[DeviceSharing]:
    """How the device plugin shares GPUs: the first way that its config has, at any depth.

    The config is `config`, or `devicePlugin.config` if that is absent or empty. A known way counts
    beside unknown parts. Else UNKNOWN if any part of the config is, OF_OTHERS if it has the name of
    a ConfigMap and no content for one, and "" if it shares none.

    Raises:
        RecursionError: A text of YAML in the config is nested too deep, or is inside of itself.
    """
    config = get(values, "config") or get(values, "devicePlugin", "config")
    for way in _ways(config):
        return way
    if config is UNKNOWN or str(UNKNOWN) in str(config):
        return UNKNOWN
    is_written = any(get(config, key) for key in _CONTENT_KEYS)
    if get(config, "name") and not is_written:
        return OF_OTHERS
    return ""


def _ways(config: object) -> Iterator[DeviceSharing]:
    """The ways of sharing in a config, at any depth, also in texts of YAML.

    Only a section that `_has_replicas` shares GPUs: `mps` may also have just the settings of its
    daemon. Nothing for UNKNOWN.
    """
    if isinstance(config, str):
        yield from _ways_in_text(config)
    for key, section in pairs(config).items():
        if key in _WAYS and _has_replicas(section):
            yield _WAYS[key]
        yield from _ways(section)
    for element in items(config):
        yield from _ways(element)


def _has_replicas(section: object) -> bool:
    """Whether one of its `resources` has another number of replicas than 1.

    A number that is absent counts as another, and one that is UNKNOWN does not.
    """
    resources = items(get(section, "resources"))
    return any(get(resource, "replicas") not in (1, UNKNOWN) for resource in resources)


def _ways_in_text(text: str) -> Iterator[DeviceSharing]:
    """The ways of sharing in a text of YAML; none in a text that is no YAML, or just a string."""
    try:
        config = yaml.safe_load(text)
    except _NO_YAML:  # the plugin does not read it either
        return
    if not isinstance(config, str):
        yield from _ways(config)
