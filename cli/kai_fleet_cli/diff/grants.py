"""What an edit lets teams do that they could not do before, by comparing two stacks' settings.

The marks of a field in the settings models say which value grants more (`sections/models.py`).
Without a mark, a larger number, more elements and true grant more; an absent value grants less. A
value that cannot be compared with the one before grants more.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, SecretStr

from kai_fleet.values import items, pairs
from kai_fleet_cli.diff.changes import UNSET, SummaryLine
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import read, verdict_of_keys
from kai_fleet_policies.key_paths import key_path
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.sections.models import Grants, Rising
from kai_usage.quantities import parse_quantity

Keys = tuple[str, ...]
# What grants more: the path of its key, and how it differs, in words.
GrantedKeys = Iterator[tuple[Keys, str]]
_SECTIONS_OF_TEAMS = ("teams", "teamStacks")
_MAX_CHARACTERS = 80
_EMPTY: Sequence[object] = (None, [], {})


def settings_in(file: Path) -> Settings | None:
    """The settings of a stack file in any folder, without the keys that are wrong.

    No rule judges them. A file of queues that it names, and its platform's, are those beside it.
    None if the file cannot be read, or if too little of it is right.
    """
    try:
        raw = read(file)
    except UserError:
        return None
    # A name of a file with queues would be looked up in this project, not beside the stack file.
    if isinstance(raw.get("queues"), str):
        raw["queues"] = _queues_in(file.parent.resolve(), raw["queues"])
    return verdict_of_keys(raw, file, stack="").settings


def _queues_in(folder: Path, name: str) -> object:
    """The queues in a file of a folder; the file's name itself if it leads out of the folder.

    Empty if the file cannot be read, as at links in a circle, or has no mapping.
    """
    path = Path(os.path.realpath(folder / name.partition("\0")[0]))
    if not path.is_relative_to(folder):
        return name
    return yaml_file.mapping(path)


def granted_lines(before: Settings | None, now: Settings | None) -> list[SummaryLine]:
    """A line for each key that lets one team, or all of them, do more than before.

    A line is of HOST if its key is not one team's. Without settings before, all that is more than
    the defaults counts; without settings now, nothing does.
    """
    if now is None:
        return []
    lines = list[SummaryLine]()
    for keys, words in _in_model(before, now, ()):
        if keys[0] in _SECTIONS_OF_TEAMS and len(keys) > 2:
            team = keys[1]
            lines.append(SummaryLine(team, now.key_path_of(team, *keys[2:]), words))
        else:
            lines.append(SummaryLine(HOST, key_path(keys), words))
    return lines


def _in_model(old: object, new: BaseModel, keys: Keys) -> GrantedKeys:
    """The keys in a section that grant more. If it is new, its fields had their defaults, and None
    where a field has no default.
    """
    model = type(new)
    before = old if isinstance(old, model) else model.model_construct()
    for name, field in model.model_fields.items():
        key = field.alias or name
        old_value = getattr(before, name, None)
        yield from _in_value(old_value, getattr(new, name), field.metadata, (*keys, key))


def _in_value(
    old: object,
    new: object,
    marks: Sequence[object],
    keys: Keys,
) -> GrantedKeys:
    """The keys in a value that grant more than those in the value before.

    `marks` are those of the field that has the value, also for what is inside a mapping. Sections
    have marks at their own fields. A key that a mapping loses counts only as `_in_mapping` says.
    """
    if old == new or Grants.NOTHING in marks:
        return
    if Grants.MOST_UNSET in marks and (old in _EMPTY or new in _EMPTY):
        if new in _EMPTY:
            yield keys, f"{_shown(old)} → {UNSET}"
    elif isinstance(new, BaseModel):
        yield from _in_model(old, new, keys)
    elif isinstance(new, Mapping):
        yield from _in_mapping(old, new, marks, keys)
    elif isinstance(new, list):
        yield from _in_list(items(old), new, marks, keys)
    elif not _grants_less(old, new, marks):
        yield keys, f"{_shown(old)} → {_shown(new)}"


def _in_mapping(
    old: object,
    new: Mapping[str, object],
    marks: Sequence[object],
    keys: Keys,
) -> GrantedKeys:
    """The keys in a mapping that grant more.

    One that is gone counts only with the marks OTHER and MOST_UNSET: a pool with fewer labels has
    more nodes.
    """
    before = pairs(old)
    names = list(new)
    if Grants.OTHER in marks or Grants.MOST_UNSET in marks:
        names += sorted(before.keys() - new.keys())
    for name in names:
        yield from _in_value(before.get(name), new.get(name), marks, (*keys, str(name)))


def _in_list(
    old: Sequence[object],
    new: Sequence[object],
    marks: Sequence[object],
    keys: Keys,
) -> GrantedKeys:
    """The list's key for elements that are added and for dropped ones, as `marks` say which of that
    grants more. Their order does not count.
    """
    added = [_shown(element) for element in new if element not in old]
    dropped = [_shown(element) for element in old if element not in new]
    if added and Grants.LESS not in marks:
        yield keys, f"adds {', '.join(added)}"
    if dropped and (Grants.LESS in marks or Grants.OTHER in marks):
        yield keys, f"drops {', '.join(dropped)}"


def _grants_less(old: object, new: object, marks: Sequence[object]) -> bool:
    """Whether a value grants less than a different one before it, or as much.

    By the mark, else by the value: false and None grant less, and so does a smaller number or
    Kubernetes quantity. False if the two cannot be compared, and always with the mark OTHER. Raises
    ValueError if a mark Rising has the old value and not the new one.
    """
    if Grants.OTHER in marks:
        return False
    if Grants.LESS in marks:
        return _grants_less(new, old, ())
    for mark in marks:
        if isinstance(mark, Rising) and old in mark.values:
            return mark.values.index(new) < mark.values.index(old)
    if isinstance(new, bool) or new is None:
        return not new
    with suppress(ValueError):
        return parse_quantity(new) <= parse_quantity(old)
    return False


def _shown(value: object) -> str:
    """A value in words, of at most 80 characters and a `…`. No secret is shown; None is UNSET."""
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, SecretStr):
        return "a secret"
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True, exclude_unset=True)
    text = str(value)
    if len(text) <= _MAX_CHARACTERS:
        return text
    return f"{text[:_MAX_CHARACTERS]}…"
