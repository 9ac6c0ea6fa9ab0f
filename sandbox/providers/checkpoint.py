"""What the state keeps of an object: the live object, and beside it the inputs that made it."""

from __future__ import annotations

from typing import Any, Final

from provider import wire
from provider.wire import Secret

from .diff import with_data

INPUTS: Final = "__inputs"
API_VERSION: Final = "__initialApiVersion"
FIELD_MANAGER: Final = "__fieldManager"

# Pulumi's property names have no dashes, so the SDKs write these keys of CRD schemas so.
_DASHED: Final = {
    key.replace("-", "_"): key
    for key in (
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}
_UNDERSCORED: Final = {dashed: key for key, dashed in _DASHED.items()}
_READ_ONLY: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, Secret):
        return Secret(_renamed(value.value, names))
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def manifest(inputs: dict[str, Any]) -> dict[str, Any]:
    """The object that `inputs` describe: no secrets' wrapping, no nulls, no read-only metadata."""
    obj: dict[str, Any] = _without_nulls(_renamed(wire.plain(inputs), _DASHED))
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        obj["metadata"] = {key: metadata[key] for key in metadata if key not in _READ_ONLY}
    return obj


def properties(obj: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """`obj` as properties, secret where `like` is."""
    marked: dict[str, Any] = wire.like(_renamed(obj, _UNDERSCORED), like)
    return marked


def state(
    inputs: dict[str, Any], live: dict[str, Any], given: dict[str, Any], manager: str
) -> dict[str, Any]:
    """The state of an object made from the manifest `inputs`, secret where the properties
    `given` are. A Secret's data is always secret.
    """
    kept = {
        **live,
        "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"},
    }
    outputs = properties(kept, given)
    if live.get("kind") == "Secret" and live.get("apiVersion") == "v1" and "data" in outputs:
        outputs["data"] = Secret(wire.plain(outputs["data"]))
    outputs[INPUTS] = properties(inputs, given)
    outputs[API_VERSION] = inputs.get("apiVersion", live.get("apiVersion"))
    outputs[FIELD_MANAGER] = manager
    return outputs


def restore(outputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The (inputs, live object) of a state."""
    live = manifest({k: v for k, v in outputs.items() if not k.startswith("__")})
    inputs = outputs.get(INPUTS)
    return manifest(wire.plain(inputs) if inputs is not None else {}), live


def comparable(obj: dict[str, Any]) -> dict[str, Any]:
    """A manifest in the form that compares with a live object."""
    secret = obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1"
    return with_data(obj) if secret else obj


def cut_to(live: Any, inputs: Any) -> Any:
    """`live` with only what `inputs` mention, as a refresh keeps it for the inputs."""
    if isinstance(live, dict) and isinstance(inputs, dict):
        return {key: cut_to(live[key], item) for key, item in inputs.items() if key in live}
    if isinstance(live, list) and isinstance(inputs, list):
        return [cut_to(item, of) for item, of in zip(live, inputs, strict=False)]
    return live


def strings_as_live(
    found: dict[str, Any], known: dict[str, Any], live: dict[str, Any]
) -> dict[str, Any]:
    """A Secret's inputs after a refresh: given as strings, and with the live values."""
    given = comparable({**known, "data": {}})["data"]
    data = live.get("data") or {}
    same = {k: known["stringData"][k] for k in given if data.get(k) == given[k]}
    drifted = {k: data[k] for k in given if k in data and data[k] != given[k]}
    if same:
        found["stringData"] = same
    if drifted:
        found["data"] = {**(found.get("data") or {}), **drifted}
    return found
