"""Properties as the engine sends and keeps them: protobuf Structs, with marks of the protocol."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

from kai_fleet.marks import OUTPUT_MARK, SECRET_MARK, SIGNATURE, UNKNOWN, UNKNOWN_TEXTS
from kai_fleet.values import whole_numbers


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
