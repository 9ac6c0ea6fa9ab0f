"""Properties as the engine sends and keeps them: protobuf Structs, with marks of the protocol."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct, Value

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

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Unmarked:
    """A protobuf Value without the protocol's marks around it; `content` is None if not known."""

    content: Value | None
    secret: bool = False


def unmarked(value: Value) -> Unmarked:
    """Take the marks of secrets and outputs off a value; those inside it stay."""
    content: Value | None = value
    secret = False
    while content is not None and SIGNATURE in content.struct_value.fields:
        fields = content.struct_value.fields
        mark = fields[SIGNATURE].string_value
        if mark not in (SECRET_MARK, OUTPUT_MARK):
            break
        secret = (
            secret or mark == SECRET_MARK or ("secret" in fields and fields["secret"].bool_value)
        )
        content = fields.get("value")
    if content is not None and content.string_value in UNKNOWN_TEXTS:
        content = None
    return Unmarked(content, secret)


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
            if SIGNATURE in fields and (inner := unmarked(value)).content is not value:
                secret = secret or inner.secret
                return unknown if inner.content is None else of(inner.content, secret=secret)
            return {key: of(item, secret=secret) for key, item in fields.items()}
        if kind == "list_value":
            return [of(item, secret=secret) for item in value.list_value.values]
        if value.string_value in UNKNOWN_TEXTS:
            return unknown
        if secret and secrets is not None:
            secrets.add(value.string_value)
        return scalar(value)

    return {key: of(value) for key, value in struct.fields.items()}


def scalar(value: Value) -> str | bool | int | float | None:
    """A text, bool or number; None for what is none of these."""
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def struct(values: Mapping[str, Any]) -> Struct:
    """Plain values for the engine."""
    message = Struct()
    message.update(values)
    return message


def secret(value: Any) -> dict[str, Any]:
    """A plain value that the engine encrypts in the state and hides in its output."""
    return {SIGNATURE: SECRET_MARK, "value": value}


# The engine copies, compares and writes down every single value several times in a run, and so do
# the SDK and the policy pack: with fifteen values to a queue a thousand of them cost three seconds.
# So a queue's spec travels as one text; the engine shows what changed within it all the same.


def packed(specs: Mapping[str, Any]) -> dict[str, str]:
    """Each spec as JSON text. Equal specs give equal texts: 2.0 is 2, as in Kubernetes' answers."""
    return {
        name: json.dumps(_with_ints(spec), sort_keys=True, separators=(",", ":"))
        for name, spec in specs.items()
    }


def unpacked(queues: Any) -> Any:
    """The specs by name again. What is not known yet stays."""
    if not isinstance(queues, Mapping):
        return queues
    return {
        name: json.loads(spec) if isinstance(spec, str) and spec.startswith("{") else spec
        for name, spec in queues.items()
    }


def _with_ints(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_ints(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def spelled(path: Path) -> str:
    """A path as Pulumi writes it: `metadata.annotations["a.b/c"]`, `spec.containers[0].image`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.search(r'[."\[\]]', step):
            text += '["{}"]'.format(step.replace('"', '\\"'))
        else:
            text += f".{step}" if text else step
    return text
