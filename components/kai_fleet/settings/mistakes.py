"""pydantic's errors, turned into key paths and sentences that say what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kai_fleet.wording import on_one_line

NAMESPACE: Final = "kai-fleet"
Location = tuple[str | int, ...]


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
    """Whether a place was left out, lies in one that was, or holds one that was."""
    return any(f"{path}.".startswith(f"{d}.") or f"{d}.".startswith(f"{path}.") for d in dropped)


def mistakes(error: ValidationError, model: type[BaseModel], raw: Any) -> Iterator[Mistake]:
    """Every error of one validation, in the order of the file."""
    meant = misspelt(error, model, raw)
    for detail in error.errors(include_url=False):
        if detail["type"] != "missing" or detail["loc"] not in meant:
            yield Mistake(key_path(detail["loc"]), _sentence(detail, model, raw))


def misspelt(error: ValidationError, model: type[BaseModel], raw: Any) -> list[Location]:
    """The keys that were meant, and are not there, where others stand: to say these is enough."""
    unknown = [d["loc"] for d in error.errors() if d["type"] == "extra_forbidden"]
    meant = ((*place[:-1], _meant(place, model) or "") for place in unknown)
    return [place for place in meant if place[-1] and _at(raw, place) is None]


def _sentence(detail: ErrorDetails, model: type[BaseModel], raw: Any) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    found = _at(raw, detail["loc"])
    match kind:
        case "extra_forbidden":
            return _unknown_key(detail["loc"], model)
        case "missing":
            return f"is missing; write {_described(detail['loc'], model)}"
        case "literal_error":
            return f"is {_shown(found)}; write one of {context['expected']}"
        case "value_error":
            return str(context["error"])
        case "recursion_loop":
            return "contains itself; a queue cannot be below itself, write the tree out"
        case "string_pattern_mismatch" if ":" in str(detail["loc"][-2:]) and _is_key(detail):
            key, _, value = str(detail["loc"][-2]).partition(":")
            return f"has no space after its colon; write {key}: {value}"
        case "string_pattern_mismatch":
            where = "has a name that" if _is_key(detail) else f"is {_shown(found)}, which"
            return f"{where} does not fit; write {_form(context['pattern'])}"
        case "string_too_long":
            return f"is longer than {context['max_length']} characters; write a shorter one"
        case "string_too_short":
            return "is empty; write a value or drop the key"
        case "greater_than_equal":
            return f"is {_shown(found)}; write {context['ge']} or more"
        case "less_than_equal":
            return f"is {_shown(found)}; write {context['le']} or less"
    if kind == "string_type":
        return f"is {_shown(found)}; write {_text_for(detail['loc'], found)}"
    if kind in _WANTED:
        wanted = _EXAMPLES.get(detail["loc"][-1]) if _WANTED[kind] == _MAPPING else None
        return f"is {_shown(found)}; write {wanted or _WANTED[kind]}"
    return f"is wrong: {detail['msg'].lower()}"


_MAPPING: Final = "a mapping of keys"
# What a mapping of that name may look like; text in its place is the commonest slip.
_EXAMPLES: Final[Mapping[str | int, str]] = {
    "cluster": "{name: prod, context: prod}",
    "scheduler": "{mode: virtual, version: v0.16.8}",
    "nodePool": "{kai-fleet/pool: ml}, a label of the team's nodes",
    "access": "{type: LoadBalancer}",
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
    r"^[a-z](": "lower-case letters, digits and dashes, beginning with a letter",
    r"^[a-z0-9](": "lower-case letters, digits, dashes and dots",
    r"^([a-z0-9](": "a label key such as kai-fleet/pool",
    r"^([A-Za-z0-9](": "a label value: letters, digits, dashes, dots",
    r"^[A-Za-z0-9](": "a host name or an address",
}


# Texts that a number, too, is not far from.
_TEXTS: Final[Mapping[str | int, str]] = {
    **dict.fromkeys(("preemptMinRuntime", "reclaimMinRuntime"), "a duration such as 4h"),
    **dict.fromkeys(("preempt", "reclaim", "window", "halfLife"), "a duration such as 4h"),
    **dict.fromkeys(("interval", "starvedAfter"), "a duration such as 30s"),
}


def _text_for(location: Location, found: Any) -> str:
    """What to write where text is wanted."""
    if location[-1] == "version" and location[0] != "gpu":
        return "a version such as " + ("v0.36.1" if "vcluster" in location else "v0.16.8")
    if wanted := _TEXTS.get(location[-1]):
        return wanted
    if isinstance(found, Mapping | list) or found is None:
        return "text"
    return f'it in quotes: "{str(found).lower() if isinstance(found, bool) else found}"'


def _is_key(detail: ErrorDetails) -> bool:
    """Whether it is about a mapping's key, and not about a value."""
    return detail["loc"][-1] == "[key]"


def _form(pattern: str) -> str:
    fits = [form for start, form in _FORMS.items() if pattern.startswith(start)]
    return fits[0] if fits else f"text like {pattern}"


def _unknown_key(location: Location, model: type[BaseModel]) -> str:
    known = _known_keys(location[:-1], model)
    close = _meant(location, model)
    instead = f"write {close}" if close else f"the keys here are {', '.join(known)}"
    if location[-1] in ("quota", "limit", "weight") and "gpu" in known:
        instead = f"it is of one resource: write gpu: {{{location[-1]}: …}}, or cpu or memory"
    return f"is an unknown key; {instead}"


def _meant(location: Location, model: type[BaseModel]) -> str | None:
    """The key that stands for an unknown one in all likelihood."""
    known = {key.lower(): key for key in _known_keys(location[:-1], model)}
    close = get_close_matches(str(location[-1]).lower(), known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def _described(location: Location, model: type[BaseModel]) -> str:
    holder = _model_at(location[:-1], model)
    for name, field in holder.model_fields.items() if holder else ():
        if (field.alias or name) == location[-1]:
            if get_origin(field.annotation) is Literal:
                return f"one of {', '.join(map(repr, get_args(field.annotation)))}"
            if example := _EXAMPLES.get(location[-1]):
                return f"{location[-1]}: {example}"
            return f"{location[-1]}: {field.description or '…'}"
    return f"{location[-1]}: …"


def _known_keys(location: Location, model: type[BaseModel]) -> list[str]:
    holder = _model_at(location, model)
    return [field.alias or name for name, field in holder.model_fields.items()] if holder else []


def _model_at(location: Location, model: type[BaseModel]) -> type[BaseModel] | None:
    """The settings model that describes a place of the file."""
    here: Any = model
    for part in location:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = {f.alias or n: f for n, f in here.model_fields.items()}
            if part not in fields:
                return None
            here = _model_of(fields[str(part)].annotation)
        elif isinstance(here, _Named):
            here = here.model
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def _model_of(annotation: Any) -> Any:
    """The model inside `X`, `X | None` or `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [_model_of(arg) for arg in get_args(annotation)]
    inner = next((m for m in models if m is not None), None)
    if inner is not None and get_origin(annotation) is dict:
        return _Named(inner)
    return inner


@dataclass(frozen=True)
class _Named:
    """A mapping of names to one model."""

    model: Any


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
