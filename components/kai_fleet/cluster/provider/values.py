"""Properties as the engine sends and keeps them: protobuf Structs, with marks of the protocol."""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct, Value

from kai_fleet.values import whole_numbers

# Marks of the protocol (sdk/go/common/resource/sig): a mapping with this key is a special value.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET_MARK: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_MARK: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
# The text that stands for a value that is not known yet.
UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# That of a string; of a bool, number, list, mapping, asset or archive.
UNKNOWN_TEXTS: Final = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
    }
)


def plain(
    struct: Struct, unknown: object = UNKNOWN, secrets: set[str] | None = None
) -> dict[str, Any]:
    """A Struct as plain Python, without marks at any depth; whole numbers are int.

    `unknown` stands for each value that is not known yet. `secrets` gets each text that is secret.
    """

    def of(value: Value, *, secret: bool = False) -> Any:
        kind = value.WhichOneof("kind")
        if kind == "struct_value":
            fields = value.struct_value.fields
            mark = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
            if mark not in (SECRET_MARK, OUTPUT_MARK):
                return {key: of(item, secret=secret) for key, item in fields.items()}
            marked = mark == SECRET_MARK or ("secret" in fields and fields["secret"].bool_value)
            return of(fields["value"], secret=secret or marked) if "value" in fields else unknown
        if kind == "list_value":
            return [of(item, secret=secret) for item in value.list_value.values]
        if value.string_value in UNKNOWN_TEXTS:
            return unknown
        if secret and secrets is not None:
            secrets.add(value.string_value)
        return None if kind in (None, "null_value") else whole_numbers(getattr(value, kind))

    return {key: of(value) for key, value in struct.fields.items()}


def struct(values: Mapping[str, Any]) -> Struct:
    """Plain values for the engine."""
    message = Struct()
    message.update(values)
    return message
