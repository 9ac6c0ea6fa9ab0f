"""Names: given ones, automatic ones, and the ids that the state keeps."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from provider.plugin import PluginError
from provider.protocol import provider_pb2
from provider.wire import UNKNOWN

AUTONAMED = "pulumi.com/autonamed"


def urn_name(urn: str) -> str:
    """The name that the program gave to the resource."""
    return urn.split("::", 3)[3]


def automatic(urn: str, seed: bytes, autonaming: Any = None) -> str:
    """`<name>-<8 hex digits>`, the same for the same seed; or what the engine proposes."""
    options = provider_pb2.CheckRequest.AutonamingOptions
    if autonaming is not None:
        if autonaming.mode == options.DISABLE:
            raise PluginError(
                "automatic naming is disabled for this stack: set the object's metadata.name"
            )
        if autonaming.mode in (options.ENFORCE, options.PROPOSE) and autonaming.proposed_name:
            return str(autonaming.proposed_name)
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(4)
    return f"{urn_name(urn)}-{digits[:8]}"


def field_manager() -> str:
    """A field manager's name for one object; the state keeps it."""
    return f"pulumi-kubernetes-{secrets.token_hex(4)}"


def metadata(obj: dict[str, Any]) -> dict[str, Any]:
    """The object's metadata; {} where it is absent or unknown."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(obj: dict[str, Any], key: str) -> str:
    """An annotation's text, "" where it is absent or unknown."""
    found = metadata(obj).get("annotations")
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def name_of(obj: dict[str, Any]) -> str:
    """The object's name, "" where it is absent or unknown."""
    name = metadata(obj).get("name")
    return name if isinstance(name, str) else ""


def namespace_of(obj: dict[str, Any]) -> str:
    """The object's namespace, "" where it is absent or unknown."""
    namespace = metadata(obj).get("namespace")
    return namespace if isinstance(namespace, str) else ""


def assign(
    obj: dict[str, Any], old: dict[str, Any], urn: str, seed: bytes, autonaming: Any = None
) -> None:
    """Names `obj` where the program did not: as it was named before, or anew."""
    found = obj.get("metadata")
    if found is UNKNOWN or (isinstance(found, dict) and found.get("name")):
        return
    if isinstance(found, dict) and found.get("generateName"):
        raise PluginError(
            "metadata.generateName does not go with server-side apply: "
            "set metadata.name, or neither for an automatic name"
        )
    given: dict[str, Any] = found if isinstance(found, dict) else {}
    annotations = given.get("annotations")
    kept = name_of(old) if annotation(old, AUTONAMED) == "true" else ""
    given["name"] = kept or automatic(urn, seed, autonaming)
    if annotations is not UNKNOWN:
        given["annotations"] = {**(annotations or {}), AUTONAMED: "true"}
    obj["metadata"] = given


def identity(namespace: str, name: str) -> str:
    """The id of an object in the state: `namespace/name`, or `name`."""
    return f"{namespace}/{name}" if namespace else name


def parse_identity(resource_id: str) -> tuple[str, str]:
    """The namespace ("" for none) and the name of an id."""
    namespace, _, name = resource_id.rpartition("/")
    return namespace, name
