"""Outputs that are not known yet, as the engine sends them to a component.

The protocol leaves their value out, and the SDK's reader of properties stops there. Nor does it
know the texts that stand for what is unknown.
"""

from __future__ import annotations

from typing import Any, Final

from pulumi.runtime import rpc

# The protocol's own marks (sdk/go/common/resource/sig).
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
# The text that stands for a value that is not known; of a bool, number, list or mapping another.
UNKNOWN: Final = frozenset(
    {
        rpc.UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


def filled(struct: Any) -> None:
    """Write what the protocol leaves out into every output of a protobuf Struct."""
    for value in struct.fields.values():
        _fill(value)


def _fill(value: Any) -> None:
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        for item in value.list_value.values:
            _fill(item)
    elif kind == "struct_value":
        fields = value.struct_value.fields
        mark = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
        if mark == OUTPUT:
            if "value" not in fields:
                fields["value"].string_value = rpc.UNKNOWN
            if "dependencies" not in fields:
                fields["dependencies"].list_value.SetInParent()
            if "secret" not in fields:
                fields["secret"].bool_value = False
        filled(value.struct_value)
