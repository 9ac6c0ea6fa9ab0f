"""Paths of keys in a stack file, as messages write them: `kai-fleet:teams.ml.gpus`."""

from collections.abc import Iterable

from kai_fleet.wording import on_one_line

NAMESPACE = "kai-fleet"
PREFIX = f"{NAMESPACE}:"
# The last element of pydantic's location if a key of a mapping is wrong, and not its value.
KEY_ITSELF = "[key]"

# Keys, and indexes of lists.
Location = tuple[str | int, ...]


def key_path(location: Location) -> str:
    """The location as a key path: `kai-fleet:teams.ml.gpus` for `("teams", "ml", "gpus")`.

    It is for people: an index of a list is a part like a key, and a key may itself have dots.
    """
    return PREFIX + ".".join(shown_parts(location))


def shown_parts(location: Location) -> list[str]:
    """The parts of a key path by `on_one_line`, without KEY_ITSELF, pydantic's mark of a key."""
    return [
        on_one_line(str(part))
        for part in location
        if part != KEY_ITSELF  # the key's own name is before it
    ]


def overlaps(path: str, others: Iterable[str]) -> bool:
    """Whether a key path is one of the others, or is above or below one of them."""
    return any(_is_at_or_below(path, other) or _is_at_or_below(other, path) for other in others)


def _is_at_or_below(path: str, above: str) -> bool:
    return f"{path}.".startswith(f"{above}.")
