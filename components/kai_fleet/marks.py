"""Texts by which Pulumi's protocol marks what a value is. Values that people write must not have
any of them.

The engine does not take a mapping with the key SIGNATURE for a mapping: if the mark says asset, it
reads the file or fetches the address that the mapping names. Sources:
`sdk/go/common/resource/sig`, `resource/plugin/rpc.go`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_MARK = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_MARK = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
# The protocol sends this text in place of a string that only the update knows. It is not the
# UNKNOWN of `kai_fleet.values`, which rules and models have.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# The texts for an unknown string, bool, number, list, mapping, asset and archive.
UNKNOWN_TEXTS = frozenset(
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
_MARKS = (
    SIGNATURE,
    SECRET_MARK,
    OUTPUT_MARK,
    "5cf8f73096256a8f31e491e813e4eb8e",  # a resource
    "803fd3297a5875dc03ca845dda5d2a98",  # bytes
    "c44067f5952c0a294b673a41bacd8c17",  # an asset
    "0def7320c3a5731c473e5ecbe6d01bc7",  # an archive
    *sorted(UNKNOWN_TEXTS),
)
_ANY_MARK = re.compile("|".join(_MARKS))
REFUSAL = "has a mark of Pulumi's protocol, by which it reads files; write another text"
Path = tuple[str | int, ...]


def has_mark(text: str) -> bool:
    """Whether a text contains a mark."""
    return _ANY_MARK.search(text) is not None


def paths_of_marks(value: object) -> Iterator[Path]:
    """Paths in a plain value to texts and keys that contain a mark, in no particular order.

    A mapping or list that several paths reach, or that contains itself, as YAML's aliases allow, is
    searched only once, at one of its paths. Nothing below a marked key is searched, and no object
    that is no mapping, list or tuple, such as an Output.
    """
    pending: list[tuple[Path, object]] = [((), value)]
    visited = set[int]()
    while pending:
        path, found = pending.pop()
        if isinstance(found, str):
            if has_mark(found):
                yield path
            continue
        if id(found) in visited:
            continue
        if isinstance(found, Mapping | list | tuple):
            visited.add(id(found))
        for key, inner in _entries(found):
            if isinstance(key, str) and has_mark(key):
                yield (*path, key)
            else:
                pending.append(((*path, key), inner))


def _entries(value: object) -> Iterable[tuple[str | int, object]]:
    """Keys or indexes with their values; nothing for a value that is no mapping and no list."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple):
        return enumerate(value)
    return ()
