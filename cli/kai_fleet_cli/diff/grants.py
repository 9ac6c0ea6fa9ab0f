"""What an edit lets teams do that they could not: two stacks' settings, field by field.

The models say what more of a field means (`sections/models.py`). More of what they say nothing
about lets a team do more, and so does another value that is neither more nor less.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from kai_fleet.settings import Settings
from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.mistakes import key_path
from kai_fleet.settings.sections.models import Grants, Rising
from kai_fleet.values import parse_quantity
from kai_fleet_cli.diff.changes import UNSET, Item
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import facts_beside, read
from kai_fleet_policies import validation
from kai_fleet_policies.model.cluster import HOST

Keys = tuple[str, ...]
_OF_TEAMS: Final = ("teams", "teamStacks")
_LONGEST: Final = 80
_EMPTY: Final[Sequence[Any]] = (None, [], {})


def settings_in(file: Path) -> Settings | None:
    """The settings of a stack file of any folder, without its wrong parts; None for too few."""
    try:
        raw = read(file)
    except UserError:
        return None
    if isinstance(raw.get("queues"), str):  # else the project's own file would be read
        raw["queues"] = _tree(file.parent.resolve(), raw["queues"])
    return validation.validate(raw, facts_of=facts_beside(file), only=()).settings


def _tree(folder: Path, name: str) -> Any:
    path = (folder / name.partition("\0")[0]).resolve()
    return yaml_file.mapping(path) if path.is_relative_to(folder) else name


def granted(before: Settings | None, now: Settings | None) -> list[Item]:
    """A line for each key that lets a team, or all of them, do more."""
    if now is None:
        return []
    lines = list[Item]()
    for keys, words in _of_model(before, now, ()):
        if keys[0] in _OF_TEAMS and len(keys) > 2:
            lines.append(Item(keys[1], now.written_at(keys[1], *keys[2:]), words))
        else:
            lines.append(Item(HOST, key_path(keys), words))
    return lines


def _of_model(before: Any, now: BaseModel, keys: Keys) -> Iterator[tuple[Keys, str]]:
    """Of each field; what was not there before had the defaults."""
    model = type(now)
    old = before if isinstance(before, model) else model.model_construct()
    for name, field in model.model_fields.items():
        key = (*keys, field.alias or name)
        yield from _of(getattr(old, name, None), getattr(now, name), field.metadata, key)


def _of(old: Any, new: Any, marks: Sequence[Any], keys: Keys) -> Iterator[tuple[Keys, str]]:
    """The keys in a value that grant more than the one before, and how."""
    if old == new or Grants.NOTHING in marks:
        return
    if Grants.MOST_UNSET in marks and (old in _EMPTY or new in _EMPTY):
        if new in _EMPTY:
            yield keys, f"{_shown(old)} → {UNSET}"
    elif isinstance(new, BaseModel):
        yield from _of_model(old, new, keys)
    elif isinstance(new, Mapping):
        yield from _of_mapping(old, new, marks, keys)
    elif isinstance(new, list):
        yield from _of_list(old or [], new, marks, keys)
    elif not _is_less(old, new, marks):
        yield keys, f"{_shown(old)} → {_shown(new)}"


def _of_mapping(
    old: Any, new: Mapping[str, Any], marks: Sequence[Any], keys: Keys
) -> Iterator[tuple[Keys, str]]:
    before = old if isinstance(old, Mapping) else {}
    gone = before.keys() - new.keys() if Grants.OTHER in marks else set()
    for name in [*new, *sorted(gone)]:
        yield from _of(before.get(name), new.get(name), marks, (*keys, str(name)))


def _of_list(
    old: list[Any], new: list[Any], marks: Sequence[Any], keys: Keys
) -> Iterator[tuple[Keys, str]]:
    added = [_shown(item) for item in new if item not in old]
    gone = [_shown(item) for item in old if item not in new]
    if added and Grants.LESS not in marks:
        yield keys, f"adds {', '.join(added)}"
    if gone and (Grants.LESS in marks or Grants.OTHER in marks):
        yield keys, f"drops {', '.join(gone)}"


def _is_less(old: Any, new: Any, marks: Sequence[Any]) -> bool:
    """Whether a value grants less than the one before."""
    if Grants.OTHER in marks:
        return False
    if Grants.LESS in marks:
        return _is_less(new, old, ())
    for mark in marks:
        if isinstance(mark, Rising) and old in mark.values:
            return mark.values.index(new) < mark.values.index(old)
    if isinstance(new, bool) or new is None:
        return not new
    with suppress(ValueError):
        return parse_quantity(new) <= parse_quantity(old)
    return False


def _shown(value: Any) -> str:
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, SecretStr):
        return "a secret"
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True, exclude_unset=True)
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
