"""Property values as the engine sends them: plain JSON, plus secrets and unknowns.

A decoded value is None, bool, int, float, str, list or dict, and may hold
`Secret(value)` and `UNKNOWN` at any depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.struct_pb2 import ListValue, Struct
from google.protobuf.struct_pb2 import Value as WireValue

from provider.marks import SECRET as _SECRET
from provider.marks import SIGNATURE as _SIGNATURE

# Fixed by Pulumi's protocol.
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
_UNKNOWN_STRING: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS: Final = frozenset(
    {
        _UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # list
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class _Unknown:
    """A value that the engine does not know yet, as at preview."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in the state and hides in its output."""

    value: Any

    def __repr__(self) -> str:
        """Never the value, which would reach a log."""
        return "Secret(...)"


def decode(properties: Struct) -> dict[str, Any]:
    """The values of a message's property bag. Whole numbers come back as int."""
    return {key: _decode(value) for key, value in properties.fields.items()}


def _decode(value: WireValue) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _decode_object(decode(value.struct_value))
    return None


def _decode_object(found: dict[str, Any]) -> Any:
    signature = found.get(_SIGNATURE)
    if signature is None:
        return found
    if signature == _SECRET:
        return Secret(found.get("value"))
    if signature == _OUTPUT:
        value = found.get("value", UNKNOWN)
        return Secret(value) if found.get("secret") else value
    if signature == _RESOURCE:
        return found.get("id", found.get("urn"))
    if signature == _ASSET and isinstance(found.get("text"), str):
        return found["text"]
    raise ValueError("assets and archives are not served by this stand-in: pass their text instead")


def encode(values: dict[str, Any], keep_secrets: bool = True) -> Struct:
    """A message's property bag for `values`; without `keep_secrets`, secrets go as plain values."""
    wire = Struct()
    for key, value in values.items():
        _encode(wire.fields[key], value, keep_secrets)
    return wire


def _encode(into: WireValue, value: Any, keep_secrets: bool) -> None:
    if value is UNKNOWN:
        into.string_value = _UNKNOWN_STRING
    elif isinstance(value, Secret):
        if keep_secrets:
            into.struct_value.fields[_SIGNATURE].string_value = _SECRET
            _encode(into.struct_value.fields["value"], value.value, keep_secrets)
        else:
            _encode(into, value.value, keep_secrets)
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, int | float):
        into.number_value = float(value)
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, list):
        into.list_value.CopyFrom(ListValue())
        for item in value:
            _encode(into.list_value.values.add(), item, keep_secrets)
    elif isinstance(value, dict):
        into.struct_value.CopyFrom(Struct())
        for key, item in value.items():
            _encode(into.struct_value.fields[str(key)], item, keep_secrets)
    else:
        into.null_value = 0


def plain(value: Any) -> Any:
    """`value` without its secrets' wrapping; unknowns stay."""
    if isinstance(value, Secret):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _any(value: Any, test: Callable[[Any], bool]) -> bool:
    if test(value):
        return True
    if isinstance(value, Secret):
        return _any(value.value, test)
    if isinstance(value, dict):
        return any(_any(item, test) for item in value.values())
    if isinstance(value, list):
        return any(_any(item, test) for item in value)
    return False


def has_unknown(value: Any) -> bool:
    """Whether `value` holds an unknown at any depth."""
    return _any(value, lambda item: item is UNKNOWN)


def has_secret(value: Any) -> bool:
    """Whether `value` holds a secret at any depth."""
    return _any(value, lambda item: isinstance(item, Secret))


def like(value: Any, source: Any) -> Any:
    """`value` with secrets marked where `source`, of the same shape, has them.

    Where the shapes differ, a list's secret covers the whole list, so that a
    secret never becomes plain by moving within it.
    """
    if isinstance(value, Secret):
        return value
    if isinstance(source, Secret):
        return Secret(plain(value))
    if isinstance(value, dict) and isinstance(source, dict):
        return {key: like(item, source.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(source, list):
        if len(value) == len(source):
            return [like(item, of) for item, of in zip(value, source, strict=True)]
        return Secret(plain(value)) if has_secret(source) else value
    return value
