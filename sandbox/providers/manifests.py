"""Between an object of the API and what a state keeps of it."""

from __future__ import annotations

import copy
import hashlib
import secrets
from typing import Any, Final

from kai_fleet.provider.errors import PluginError
from sandbox.control_plane.kube_api import Object
from sandbox.providers.cluster import Kind
from sandbox.providers.host import name_of, type_of
from sandbox.providers.official_words import officially
from sandbox.providers.values import Properties, PropertyValue, marked, marked_map, plain

# A create is a plain one under this manager; the first update hands its fields to the manager of
# the object's own, which applies from then on.
CREATOR: Final = "pulumi-kubernetes"
# Beginnings of other managers whose fields it takes over then, `kubectl label`'s among them: what
# of these the program does not declare goes with that update.
_TAKEN_OVER: Final = (
    ("kubectl", "Apply"),
    ("kubectl", "Update"),
    ("before-first-apply", "Update"),
    (CREATOR, "Update"),
)
_AUTONAMED: Final = "pulumi.com/autonamed"
_READ_ONLY: Final = {
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"),
    *("managedFields", "resourceVersion", "uid"),
}


def kind_of(obj: Object, urn: str) -> Kind:
    """The kind of an object, or else the one that its resource's type names."""
    _, group_version, name = type_of(urn).split(":")
    version = str(obj.get("apiVersion") or group_version.removeprefix("core/"))
    return Kind(version, str(obj.get("kind") or name))


def new_manager() -> str:
    """A field manager's name for one object; the state keeps it."""
    return f"{CREATOR}-{secrets.token_hex(4)}"


def assign_name(metadata: Object, old: Object, request: Any) -> None:
    """Name what the program did not: as before, or anew."""
    if metadata.get("name"):
        return
    if metadata.get("generateName"):
        raise PluginError(officially("generate_name"))
    digits = hashlib.sha256(request.randomSeed or secrets.token_bytes()).hexdigest()[:8]
    kept = old.get("name") if _autonamed(old) else None
    metadata["name"] = kept or f"{name_of(request.urn)}-{digits}"
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _AUTONAMED: "true"}


def _autonamed(metadata: Object) -> bool:
    return bool((metadata.get("annotations") or {}).get(_AUTONAMED) == "true")


def same_place(new: Object, live: Object) -> bool:
    """Whether a replacement must have the name of what it replaces, which has to go first."""
    return not _autonamed(new["metadata"]) and identity(new) == identity(live)


def identity(obj: Object) -> str:
    """What the state calls an object: `namespace/name`, or `name`."""
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))


def manifest(inputs: Object) -> Object:
    """The object that inputs describe: no nulls, no read-only metadata, dashes as the API has."""
    obj: Object = _renamed(inputs, "x_kubernetes_", "_", "-")
    if isinstance(metadata := obj.get("metadata"), dict):
        obj["metadata"] = {key: metadata[key] for key in metadata if key not in _READ_ONLY}
    return obj


def _renamed(value: Any, prefix: str, old: str, new: str) -> Any:
    """Keys of CRD schemas such as `x-kubernetes-list-type`: a property's name has no dashes."""
    if isinstance(value, list):
        return [_renamed(item, prefix, old, new) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key.replace(old, new) if key.startswith(prefix) else key: _renamed(item, prefix, old, new)
        for key, item in value.items()
        if item is not None
    }


def properties(obj: Object, like: Properties) -> Properties:
    """An object as properties, secret where `like` is; a Secret's data always are."""
    found = marked_map(_renamed(obj, "x-kubernetes-", "-", "_"), like)
    for key in ("data", "stringData") if obj.get("kind") == "Secret" else ():
        if key in found:
            found[key] = marked(plain(found[key])).with_secret(True)
    return found


def state(obj: Object, live: Object, like: Properties, manager: str) -> Properties:
    """What the state keeps: the live object, and beside it the inputs that made it."""
    metadata = {key: live["metadata"][key] for key in live["metadata"] if key != "managedFields"}
    return properties({**live, "metadata": metadata}, like) | {
        "__inputs": PropertyValue(properties(obj, like)),
        "__initialApiVersion": PropertyValue(str(obj.get("apiVersion", live.get("apiVersion")))),
        "__fieldManager": PropertyValue(manager),
    }


def of_state(kept: Properties) -> tuple[Object, Object, str]:
    """The inputs, the live object and the field manager of a state."""
    found = plain(kept)
    live = {key: value for key, value in found.items() if not key.startswith("__")}
    manager = str(found.get("__fieldManager") or new_manager())
    return manifest(found.get("__inputs") or {}), manifest(live), manager


def cut(live: Any, inputs: Any) -> Any:
    """A live object with only what the inputs mention."""
    if isinstance(live, dict) and isinstance(inputs, dict):
        return {key: cut(live[key], item) for key, item in inputs.items() if key in live}
    if isinstance(live, list) and isinstance(inputs, list):
        return [cut(item, of) for item, of in zip(live, inputs, strict=False)]
    return live


def created_fields(live: Object) -> list[Object]:
    """What of a live object's fields a create of a provider still owns."""
    fields: list[Object] = live["metadata"].get("managedFields") or []
    return [f for f in fields if (f["manager"], f["operation"]) == (CREATOR, "Update")]


def handed_over(live: Object, manager: str) -> list[Object]:
    """The patch that gives what the create and kubectl own to the object's own manager."""
    before: list[Object] = live["metadata"].get("managedFields") or []
    taken = [f for f in before if _is_taken_over(f)]
    if not taken:
        return []
    fields = [f for f in before if f not in taken]
    own = next((f for f in fields if (f["manager"], f["operation"]) == (manager, "Apply")), None)
    if own is None:
        own = {**copy.deepcopy(taken[0]), "manager": manager, "operation": "Apply"}
        fields.append(own)
    for entry in taken:
        own["fieldsV1"] = _union(own.get("fieldsV1") or {}, entry.get("fieldsV1") or {})
    version = live["metadata"]["resourceVersion"]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": fields},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]


def _is_taken_over(entry: Object) -> bool:
    return not entry.get("subresource") and any(
        entry["manager"].startswith(name) and entry["operation"] == operation
        for name, operation in _TAKEN_OVER
    )


def _union(one: Object, other: Object) -> Object:
    return {**one, **{key: _union(one.get(key) or {}, item) for key, item in other.items()}}
