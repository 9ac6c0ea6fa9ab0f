"""Texts by which Pulumi's protocol says what a value is: what people write may have none.

A mapping with SIGNATURE as a key is no mapping for the engine: it reads the file, or fetches the
address, that an asset names. Sources: `sdk/go/common/resource/sig`, `resource/plugin/rpc.go`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET_MARK: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_MARK: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_OTHER_MARKS: Final = (
    "5cf8f73096256a8f31e491e813e4eb8e",  # a resource
    "803fd3297a5875dc03ca845dda5d2a98",  # bytes
    "c44067f5952c0a294b673a41bacd8c17",  # an asset
    "0def7320c3a5731c473e5ecbe6d01bc7",  # an archive
)
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
_EVERY: Final = re.compile(
    "|".join((SIGNATURE, SECRET_MARK, OUTPUT_MARK, *_OTHER_MARKS, *sorted(UNKNOWN_TEXTS)))
)
REFUSAL: Final = "has a mark of Pulumi's protocol, by which it reads files; write another text"


def has_mark(text: str) -> bool:
    """Whether a text has one of these in it."""
    return _EVERY.search(text) is not None


def marked(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The places in a plain value whose key or text has a mark.

    What stands in several places, or in itself, as aliases of YAML may, is looked at once.
    """
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    visited: set[int] = set()
    while pending:
        place, found = pending.pop()
        if isinstance(found, Mapping | list | tuple):
            if id(found) in visited:
                continue
            visited.add(id(found))
        inside: Any = ()
        if isinstance(found, str):
            if has_mark(found):
                yield place
        elif isinstance(found, Mapping):
            inside = found.items()
        elif isinstance(found, list | tuple):
            inside = enumerate(found)
        for key, item in inside:
            if isinstance(key, str) and has_mark(key):
                yield (*place, key)
            else:
                pending.append(((*place, key), item))
