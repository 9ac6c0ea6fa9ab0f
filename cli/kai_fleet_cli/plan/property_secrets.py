"""Secrets in a stack's exported state: how they are marked, and what is in them."""

import json
from collections.abc import Mapping
from typing import Any, Final

# Fixed by Pulumi for states and for its protocol: what is no plain value, and what is a secret.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_IN_EVENTS: Final = "[secret]"  # what the engine's events show in a secret's place


def is_secret(value: Any) -> bool:
    """Whether a value of a state is a secret, encrypted or in clear."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET


def has_secrets(value: Any) -> bool:
    """Whether a value of a state or of an engine's event is a secret, or holds one somewhere."""
    if isinstance(value, Mapping):
        return is_secret(value) or any(has_secrets(item) for item in value.values())
    if isinstance(value, list):
        return any(has_secrets(item) for item in value)
    return bool(value == _IN_EVENTS)


def in_clear(value: Any) -> dict[str, Any]:
    """A value as a secret that the engine is to encrypt when it takes the state in."""
    return {SIGNATURE: SECRET, "plaintext": json.dumps(value)}


def opened(value: Any) -> Any:
    """A value with its secrets opened at any depth; None for one that is still encrypted."""
    if is_secret(value):
        text = value.get("plaintext")
        return opened(json.loads(text)) if isinstance(text, str) else None
    if isinstance(value, Mapping):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    return value
