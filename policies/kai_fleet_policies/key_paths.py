"""Paths of keys in a stack file, as messages write them: `kai-fleet:teams.ml.gpus`."""

from collections.abc import Iterable
from typing import Final

from kai_fleet.wording import on_one_line

NAMESPACE: Final = "kai-fleet"
PREFIX: Final = f"{NAMESPACE}:"
# pydantic's last element of the location of a wrong key of a mapping.
KEY_ITSELF: Final = "[key]"

# Keys, and indexes of lists.
Location = tuple[str | int, ...]


def key_path(location: Location) -> str:
    """The location as a key path: `kai-fleet:teams.ml.gpus` for `("teams", "ml", "gpus")`."""
    return PREFIX + ".".join(shown_parts(location))


def shown_parts(location: Location) -> list[str]:
    """The parts of a key path, without pydantic's mark of a wrong key."""
    return [
        on_one_line(str(part))
        for part in location
        if part != KEY_ITSELF  # the key's own name is before it
    ]


def overlaps(path: str, others: Iterable[str]) -> bool:
    """Whether a key path is one of the others, or is above or below one of them."""
    for other in others:
        if _is_below(path, other):
            return True
        if _is_below(other, path):
            return True
    return False


def _is_below(path: str, above: str) -> bool:
    return f"{path}.".startswith(f"{above}.")
