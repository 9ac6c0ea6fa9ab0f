"""Properties as the engine sends and stores them: protobuf Structs with marks of the protocol."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf.struct_pb2 import Struct, Value

from kai_fleet.marks import OUTPUT_MARK, SECRET_MARK, SIGNATURE, UNKNOWN, UNKNOWN_TEXTS
from kai_fleet.values import whole_numbers


def python_values(
    struct: Struct, unknown: object = UNKNOWN, secrets: set[str] | None = None
) -> dict[str, Any]:
    """A Struct as plain Python, without marks of secrets and outputs; whole numbers are int.

    Other marks, such as those of assets, stay as keys of their mappings.

    Args:
        struct: The properties.
        unknown: What stands for each value that is not known yet; by default the text
            `marks.UNKNOWN`, which is not `values.UNKNOWN`.
        secrets: Gets all texts that are secret, and "" for a secret that is no text.
    """
    reader = _Reader(unknown, set() if secrets is None else secrets)
    return reader.fields(struct, secret=False)


class _Reader(NamedTuple):
    """Reads protobuf values; adds secret texts to `secrets`."""

    unknown: object
    secrets: set[str]

    def fields(self, struct: Struct, *, secret: bool) -> dict[str, Any]:
        """The fields of a Struct, without a look at its mark."""
        return {key: self.value(item, secret=secret) for key, item in struct.fields.items()}

    def value(self, value: Value, *, secret: bool) -> Any:
        """A value; `secret` says that it is inside a secret."""
        kind = value.WhichOneof("kind")
        if kind == "struct_value":
            return self._struct(value.struct_value, secret=secret)
        if kind == "list_value":
            return [self.value(item, secret=secret) for item in value.list_value.values]
        if value.string_value in UNKNOWN_TEXTS:
            return self.unknown
        if secret:
            self.secrets.add(value.string_value)
        if kind in (None, "null_value"):
            return None
        return whole_numbers(getattr(value, kind))

    def _struct(self, struct: Struct, *, secret: bool) -> Any:
        """A mapping, or the value in a secret or an output; an output without one is unknown."""
        fields = struct.fields
        mark = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
        if mark not in (SECRET_MARK, OUTPUT_MARK):
            return self.fields(struct, secret=secret)
        if "value" not in fields:
            return self.unknown
        if mark == SECRET_MARK:
            secret = True
        elif "secret" in fields:
            secret = secret or fields["secret"].bool_value
        return self.value(fields["value"], secret=secret)


def struct(values: Mapping[str, object]) -> Struct:
    """Plain values as the engine takes them. Raises ValueError for what JSON does not have."""
    message = Struct()
    message.update(values)
    return message
