"""A settings model without the wrong parts of a file; pydantic's errors as key paths and sentences.

A sentence says what to write instead.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kai_fleet.settings.sections import models
from kai_fleet.settings.sections.models import Location
from kai_fleet.wording import listed, on_one_line, spelt_like

M = TypeVar("M", bound=BaseModel)
NAMESPACE: Final = "kai-fleet"
# A team's keys, and those of its platform about it, are in two files: how many steps lead to them,
# what the other file is called, and where it has such keys.
_TEAM_ELSEWHERE: Final[Mapping[str | int, tuple[int, str, Location]]] = {
    "teamStacks": (2, "the team's own stack file", ("team",)),
    "team": (1, "the platform's stack file", ("teamStacks", "NAME")),
}


@dataclass(frozen=True, order=True)
class Mistake:
    """One wrong place of a stack file: its key path, and what to write there."""

    path: str
    message: str

    def __str__(self) -> str:
        """The line a report shows."""
        return f"{self.path} {self.message}"


def key_path(location: Location) -> str:
    """`("teams", "ml", "gpus")` as `kai-fleet:teams.ml.gpus`."""
    parts = [on_one_line(str(part)) for part in location if part != "[key]"]
    return f"{NAMESPACE}:{'.'.join(parts)}"


def within(path: str, dropped: Iterable[str]) -> bool:
    """Whether a place is among the dropped ones, lies in one of them, or holds one."""
    return any(f"{path}.".startswith(f"{d}.") or f"{d}.".startswith(f"{path}.") for d in dropped)


def located(path: str, wrong: Iterable[tuple[str, str]]) -> Iterator[Mistake]:
    """The mistakes at keys below a path, of their sentences: (key, sentence)."""
    return (Mistake(f"{path}.{key}", sentence) for key, sentence in wrong)


def validated(
    model: type[M],
    raw: Any,
    *,
    elsewhere: type[BaseModel] | None = None,
    needed: Mapping[str, Any] | None = None,
) -> tuple[M | None, list[Mistake], list[str]]:
    """A model without its wrong parts, every mistake, and the key paths that were left out.

    `elsewhere` is the model of the other kind of stack file, where an unknown key may belong;
    `needed` stands in for required keys that cannot be read. None where too little is right.
    """
    found: list[Mistake] = []
    dropped: list[str] = []
    rest, stand_in = raw, dict(needed or {})
    while True:  # leaving a wrong part out can show others
        try:
            return model.model_validate(rest), found, dropped
        except ValidationError as error:
            found += [
                m for m in _mistakes(error, model, rest, elsewhere) if not within(m.path, dropped)
            ]
            dropped += [key_path(place) for place in _misspelt(error, model, rest)]
            if any(detail["type"] == "recursion_loop" for detail in error.errors()):
                return None, found, dropped
            rest, out = _without(rest, [it["loc"] for it in error.errors(include_url=False)])
            dropped += [key_path(place) for place in out]
            if not out:
                if not isinstance(rest, dict) or not stand_in.keys() - rest.keys():
                    return None, found, dropped
                dropped += [key_path((key,)) for key in stand_in]
                rest, stand_in = {**stand_in, **rest}, {}


def _without(raw: Any, places: list[Location]) -> tuple[Any, list[Location]]:
    """A copy of `raw` without the wrong places, and what was taken out.

    That is what holds a place where the place is an absent key, or in a list: without one of its
    items a list would say something else.
    """
    rest, out = copy.deepcopy(raw), list[Location]()
    for place in places:
        if any(place[: len(it)] == it for it in out):
            continue
        here, holder = rest, None
        for depth, part in enumerate(place, 1):
            if not isinstance(here, dict) or part not in here:
                break
            holder, here = (here, place[:depth]), here[part]
        if holder is not None:
            del holder[0][holder[1][-1]]
            out.append(holder[1])
    return rest, out


def _mistakes(
    error: ValidationError, model: type[BaseModel], raw: Any, elsewhere: type[BaseModel] | None
) -> Iterator[Mistake]:
    """Every error of one validation, in the order of the file."""
    meant = _misspelt(error, model, raw)
    for detail in error.errors(include_url=False):
        if detail["type"] != "missing" or detail["loc"] not in meant:
            yield Mistake(key_path(detail["loc"]), _sentence(detail, model, raw, elsewhere))


def _misspelt(error: ValidationError, model: type[BaseModel], raw: Any) -> list[Location]:
    """Absent keys that misspelt ones stand for: to name the misspelt ones is enough."""
    unknown = [d["loc"] for d in error.errors() if d["type"] == "extra_forbidden"]
    meant = (
        (*place[:-1], spelt_like(str(place[-1]), _keys(place, model)) or "") for place in unknown
    )
    return [place for place in meant if place[-1] and _at(raw, place) is None]


def _keys(location: Location, model: type[BaseModel]) -> list[str]:
    """The keys that there are where one of them stands."""
    return [str(name) for name in models.fields(models.model_at(location[:-1], model))]


def _sentence(
    detail: ErrorDetails, model: type[BaseModel], raw: Any, elsewhere: type[BaseModel] | None
) -> str:
    kind, place = detail["type"], detail["loc"]
    value = _at(raw, place)
    # A password may stand in the wrong place of an account.
    shown = "of another form" if "registries" in place else _shown(value)
    if kind == "extra_forbidden":
        return _unknown_key(place, model, elsewhere)
    if kind == "missing":
        return f"is missing; write {_description(place, model)}"
    if kind == "string_pattern_mismatch":
        return _wrong_form(detail, shown)
    if kind in _SENTENCES:
        return _SENTENCES[kind].format(value=shown, **detail.get("ctx", {}))
    if kind == "string_type":
        return f"is {shown}; write {_text_for(place, value)}"
    if kind in _WANTED:
        example = _EXAMPLES.get(place[-1]) if _WANTED[kind] == _MAPPING else None
        return f"is {shown}; write {example or _WANTED[kind]}"
    return f"is wrong: {detail['msg'].lower()}"


_SENTENCES: Final = {
    "literal_error": "is {value}; write one of {expected}",
    "value_error": "{error}",
    "recursion_loop": "contains itself; a queue cannot be below itself, write the tree out",
    "string_too_long": "is longer than {max_length} characters; write a shorter one",
    "string_too_short": "is empty; write a value or drop the key",
    "too_short": "is empty; write a value or drop the key",
    "greater_than_equal": "is {value}; write {ge} or more",
    "less_than_equal": "is {value}; write {le} or less",
}
_MAPPING: Final = "a mapping of keys"
# What a mapping of that name may look like; text in its place is the commonest slip.
_EXAMPLES: Final[Mapping[str | int, str]] = {
    "cluster": "{name: prod, context: prod}",
    "scheduler": "{mode: virtual, version: v0.16.8}",
    "nodePool": "{kai-fleet/pool: ml}, a label of the team's nodes",
    "access": "{type: LoadBalancer}",
    "gpuSharing": "true, false, or a mode such as {mode: NvFractions}",
    "queues": "names of queues with a mapping each, such as train: {gpu: 4}",
    "children": "names of queues with a mapping each, such as train: {gpu: 4}",
    "teams": "each team below its name, such as ml: {scheduler: …}",
}
_WANTED: Final = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list, such as [a, b]",
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
}

_FORMS: Final = {
    r"^v?[0-9]": "a version such as v0.36.1",
    r"^v[0-9]": "a version such as v0.16.8, with its v",
    r"^[1-9]": "a duration such as 30s, 15m or 1h",
    r"^[^:]+": "a name without a colon",
    r"^(@": "five fields, such as 0 0 * * 1",
    r"^[A-Z]": "three capital letters, such as EUR",
    r"^[a-z](": "lower-case letters, digits and dashes, beginning with a letter",
    r"^[a-z0-9](": "lower-case letters, digits, dashes and dots",
    r"^([a-z0-9](": "a label key such as kai-fleet/pool",
    r"^([A-Za-z0-9](": "a label value: letters, digits, dashes, dots",
}
# Texts that a number, too, is not far from.
_DURATIONS: Final[Mapping[str | int, str]] = {
    **dict.fromkeys(("preemptMinRuntime", "reclaimMinRuntime", "preempt", "reclaim"), "4h"),
    **dict.fromkeys(("window", "halfLife"), "4h"),
    **dict.fromkeys(("interval", "starvedAfter"), "30s"),
}


def _text_for(location: Location, value: Any) -> str:
    """What to write where text is wanted."""
    if location[-1] == "version" and location[0] != "gpu":
        return "a version such as " + ("v0.36.1" if "vcluster" in location else "v0.16.8")
    if location[-1] in _DURATIONS:
        return f"a duration such as {_DURATIONS[location[-1]]}"
    if isinstance(value, Mapping | list) or value is None:
        return "text"
    return f'it in quotes: "{str(value).lower() if isinstance(value, bool) else value}"'


def _wrong_form(detail: ErrorDetails, shown: str) -> str:
    pattern = str(detail.get("ctx", {})["pattern"])
    form = next((it for start, it in _FORMS.items() if pattern.startswith(start)), None)
    wanted = f"does not fit; write {form or f'text like {pattern}'}"
    if detail["loc"][-1] != "[key]":
        return f"is {shown}, which {wanted}"
    key, colon, rest = str(detail["loc"][-2]).partition(":")
    if colon:
        return f"has no space after its colon; write {key}: {rest}"
    return f"has a name that {wanted}"


def _unknown_key(
    location: Location, model: type[BaseModel], elsewhere: type[BaseModel] | None
) -> str:
    key, known = str(location[-1]), _keys(location, model)
    if key in ("quota", "limit", "weight") and "gpu" in known:
        instead = f"it is of one resource: write gpu: {{{key}: …}}, or cpu or memory"
    elif close := spelt_like(key, known):
        instead = f"write {close}"
    else:
        belongs = _where(key, location[:-1], model, elsewhere)
        instead = belongs or f"the keys here are {', '.join(known)}"
    return f"is an unknown key; {instead}"


def _where(
    key: str, location: Location, model: type[BaseModel], elsewhere: type[BaseModel] | None
) -> str | None:
    """Where a key of another place belongs; None where no place near has it."""
    if places := models.places_of(key, location, model):
        sections = [f"in {place[-2]}" if place[1:] else "at the top" for place in places]
        return f"it belongs {listed(sections)}: write {listed(list(map(key_path, places)))}"
    if elsewhere is not None and location and location[0] in _TEAM_ELSEWHERE:
        steps, file, there = _TEAM_ELSEWHERE[location[0]]
        if places := models.places_of(key, (*there, *location[steps:]), elsewhere):
            return f"it belongs to {file}: write {listed(list(map(key_path, places)))} there"
    return None


def _description(location: Location, model: type[BaseModel]) -> str:
    name = location[-1]
    field = models.fields(models.model_at(location[:-1], model)).get(name)
    if field is None:
        return f"{name}: …"
    if get_origin(field.annotation) is Literal:
        return f"one of {', '.join(map(repr, get_args(field.annotation)))}"
    if example := _EXAMPLES.get(name):
        return f"{name}: {example}"
    about = f" ({field.description.rstrip('.')})" if field.description else ""
    return f"{name}: …{about}"


def _at(raw: Any, location: Location) -> Any:
    for part in location:
        if part == "[key]":
            return None
        try:
            raw = raw[part]  # of a mapping or a list
        except (LookupError, TypeError):
            return None
    return raw


def _shown(value: Any) -> str:
    """A value as a message may show it: short, and never a mapping's content."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
