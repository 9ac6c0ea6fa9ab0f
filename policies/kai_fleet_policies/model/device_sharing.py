"""How a device plugin shares GPUs, by the values of its chart or of the operator's.

Source: the plugin's `sharing` section, `timeSlicing` or `mps` with `resources`, each with
`replicas`; the charts' `config` and `devicePlugin.config`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import yaml

from kai_fleet.values import UNKNOWN, get, items, pairs

OF_OTHERS: Final = "a ConfigMap of others"
DeviceSharing: TypeAlias = Literal["", "time-slicing", "MPS", "a ConfigMap of others"]
_WAYS: Final[Mapping[str, DeviceSharing]] = {"timeSlicing": "time-slicing", "mps": "MPS"}
# Charts write a ConfigMap of these; without them `name` is one that somebody else made.
_OWN: Final = ("map", "data")


def device_sharing(values: Any) -> Any:
    """By time-slicing, by MPS, ("") not at all, or by what a ConfigMap of others says; UNKNOWN
    where only the update knows it.
    """
    config = get(values, "config") or get(values, "devicePlugin", "config")
    for way in _shared(config):
        return way
    if config is UNKNOWN or str(UNKNOWN) in str(config):
        return UNKNOWN
    written = any(get(config, key) for key in _OWN)
    return OF_OTHERS if get(config, "name") and not written else ""


def _shared(value: Any) -> Iterator[DeviceSharing]:
    """The ways in a value at any depth, also in YAML text; `mps` has a daemon's settings, too."""
    if isinstance(value, str):
        yield from _shared_by_text(value)
    for key, item in pairs(value).items():
        resources = items(get(item, "resources")) if key in _WAYS else ()
        if any(get(resource, "replicas") != 1 for resource in resources):
            yield _WAYS[key]
        yield from _shared(item)
    for item in items(value):
        yield from _shared(item)


def _shared_by_text(text: str) -> Iterator[DeviceSharing]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:  # the plugin does not read it either
        return
    if not isinstance(content, str):
        yield from _shared(content)
