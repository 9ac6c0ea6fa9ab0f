"""How a device plugin shares GPUs, by the values of its chart or of the operator's.

Source: the plugin's `sharing` section, `timeSlicing` or `mps` with `resources`, each with
`replicas`; the charts' `config` and `devicePlugin.config`.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import yaml

from kai_fleet.values import UNKNOWN, Maybe, get, items, pairs

OF_OTHERS: Final = "a ConfigMap of others"
# "" is not at all.
DeviceSharing: TypeAlias = Literal["", "time-slicing", "MPS", "a ConfigMap of others"]
_WAYS: Final[Mapping[str, DeviceSharing]] = {"timeSlicing": "time-slicing", "mps": "MPS"}
# From these keys the charts write a ConfigMap; without them `name` is that of an existing one.
_CONTENT_KEYS: Final = ("map", "data")


def device_sharing(values: object) -> Maybe[DeviceSharing]:
    """How the device plugin shares GPUs: the first way that its config has, at any depth.

    "" if it does not, OF_OTHERS if only a ConfigMap that is not ours says it, and UNKNOWN if a part
    of the config is not known. Raises ValueError if a text of YAML in it has a date that does not
    exist.
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

    Only a section in which a resource has more than one replica shares GPUs: `mps` may also have
    the settings of its daemon. A number of replicas that is absent counts as more, and one that is
    UNKNOWN decides nothing. Raises ValueError as `_ways_in_text` does.
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
    """Whether a resource is known to have another number of replicas than 1."""
    resources = items(get(section, "resources"))
    return any(get(resource, "replicas") not in (1, UNKNOWN) for resource in resources)


def _ways_in_text(text: str) -> Iterator[DeviceSharing]:
    """The ways of sharing in a text of YAML; none in other texts.

    Raises ValueError for YAML with a date that does not exist, such as 2024-13-45, or with a tag
    such as `!!int` on another value.
    """
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError:  # the plugin does not read it either
        return
    if not isinstance(config, str):
        yield from _ways(config)
