"""A settings model without the wrong parts of a file; pydantic's errors as findings.

A finding names the key, the cause, and what to write instead.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kai_fleet.finding import Finding, Level
from kai_fleet.settings.sections.models import Location, fields_beside
from kai_fleet.wording import on_one_line, quoted, spelt_like

M = TypeVar("M", bound=BaseModel)
NAMESPACE: Final = "kai-fleet"
CHECK: Final = "config"


def wrong_key(path: str, message: str) -> Finding:
    """A mistake at a key of a stack file; the message is `cause; fix`."""
    cause, _, fix = on_one_line(message).partition("; ")
    name = path.replace(":", ".").rpartition(".")[2]
    return Finding(Level.MANDATORY, path, "key", name, cause, fix, CHECK)


def key_path(location: Location) -> str:
    """`("teams", "ml", "gpus")` as `kai-fleet:teams.ml.gpus`."""
    parts = [on_one_line(str(part)) for part in location if part != "[key]"]
    return f"{NAMESPACE}:{'.'.join(parts)}"


def within(path: str, dropped: Iterable[str]) -> bool:
    """Whether a place is among the dropped ones, lies in one of them, or holds one."""
    return any(f"{path}.".startswith(f"{d}.") or f"{d}.".startswith(f"{path}.") for d in dropped)


def validated(model: type[M], raw: Any) -> tuple[M | None, list[Finding], list[str]]:
    """A model without its wrong parts, every mistake, and the key paths that were left out.

    None where too little is right.
    """
    found, dropped, rest = list[Finding](), list[str](), raw
    while True:  # leaving a wrong part out can show others
        try:
            return model.model_validate(rest), found, dropped
        except ValidationError as error:
            details = {each["loc"]: each for each in error.errors(include_url=False)}
        unknown = (place for place in details if details[place]["type"] == "extra_forbidden")
        meant = {_meant(place, model) for place in unknown}
        wrong = {key_path(at): _message(details[at], model) for at in details if at not in meant}
        found += [wrong_key(at, wrong[at]) for at in wrong if not within(at, dropped)]
        dropped += [key_path(place) for place in meant if place[-1]]
        rest, out = _without(rest, details)
        dropped += map(key_path, out)
        if not out:
            return None, found, dropped


def _without(raw: Any, places: Iterable[Location]) -> tuple[Any, list[Location]]:
    """A copy of `raw` without the wrong places, and what was taken out.

    That is what holds a place where the place is an absent key, or in a list: without one of its
    items a list would say something else.
    """
    rest, out = copy.deepcopy(raw), list[Location]()
    for place in places:
        if any(place[: len(above)] == above for above in out):
            continue
        here, above, depth = rest, None, 0
        while depth < len(place) and isinstance(here, dict) and place[depth] in here:
            above, here, depth = here, here[place[depth]], depth + 1
        if above is not None:
            del above[place[depth - 1]]
            out.append(place[:depth])
    return rest, out


_MAPPING: Final = "a mapping of keys"
_TEXT: Final = "text, in quotes"
_MESSAGES: Final = {
    "value_error": "{error}",
    "literal_error": "is {value}; write one of {expected}",
    "recursion_loop": "contains itself; write the tree out",
    "string_type": f"is {{value}}; write {_TEXT}",
    "string_too_long": "is longer than {max_length} characters; write a shorter one",
    "string_too_short": "is empty; write a value or drop the key",
    "too_short": "is empty; write a value or drop the key",
    "too_long": "has more than {max_length}; write fewer",
    "greater_than_equal": "is {value}; write {ge} or more",
    "less_than_equal": "is {value}; write {le} or less",
    "bool_type": "is {value}; write true or false",
    "int_type": "is {value}; write a whole number",
    "int_from_float": "is {value}; write a whole number",
    "float_type": "is {value}; write a number",
    "finite_number": "is {value}; write a finite number",
    "list_type": "is {value}; write a list, such as [a, b]",
    "dict_type": f"is {{value}}; write {_MAPPING}",
    "model_type": f"is {{value}}; write {_MAPPING}",
    "model_attributes_type": f"is {{value}}; write {_MAPPING}",
}
# What a key of that name may look like: where it is missing, or is text.
_EXAMPLES: Final[Mapping[str | int, str]] = {
    "cluster": "{name: prod, context: prod}",
    "scheduler": "{mode: virtual, version: v0.16.8}",
    "mode": "virtual, host or default",
    "version": "a version such as v0.16.8",
    "nodePool": "{kai-fleet/pool: ml}, a label of the team's nodes",
    "access": "{type: LoadBalancer}",
    "gpuSharing": "true, false, or a mode such as {mode: NvFractions}",
    "queues": "names of queues with a mapping each, such as train: {gpu: 4}",
    "children": "names of queues with a mapping each, such as train: {gpu: 4}",
    "teams": "each team below its name, such as ml: {scheduler: …}",
}
# What a text has to be, by the beginning of its pattern.
_FORMS: Final = {
    r"^v?[0-9]": "a version such as v0.36.1",
    r"^v[0-9]": "a version such as v0.16.8, with its v",
    r"^[1-9]": "a duration such as 30s, 15m or 1h",
    r"^[^:]+": "a name without a colon",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/": "NAMESPACE/NAME, such as gateways/tls",
    r"^(@": "five fields, such as 0 0 * * 1",
    r"^[a-z](": "lower-case letters, digits and dashes, beginning with a letter",
    r"^[a-z0-9](": "lower-case letters, digits, dashes and dots",
    r"^([a-z0-9](": "a label key such as kai-fleet/pool",
    r"^([A-Za-z0-9](": "a label value: letters, digits, dashes, dots",
}
_SECRETS: Final = frozenset({"registries", "kubeconfig", "dataSource"})


def _meant(place: Location, model: type[BaseModel]) -> Location:
    """The place of the known key that an unknown one is spelt like."""
    return (*place[:-1], spelt_like(str(place[-1]), _keys(place, model)) or "")


def _keys(place: Location, model: type[BaseModel]) -> list[str]:
    return list(map(str, fields_beside(place, model)))


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong with a key, and what to write: `cause; fix`."""
    kind, place, context = detail["type"], detail["loc"], detail.get("ctx", {})
    # A password may stand in the wrong place of an account.
    shown = "of another form" if _SECRETS & set(place) else _shown(detail["input"])
    if kind == "extra_forbidden":
        close = _meant(place, model)[-1]
        keys = f"the keys here are {', '.join(_keys(place, model))}"
        return f"is an unknown key; {f'write {close}' if close else keys}"
    example = _EXAMPLES.get(place[-1])
    if kind == "missing":
        field = fields_beside(place, model).get(place[-1])
        about = (field.description or "") if field else ""
        return f"is missing; write {place[-1]}: {example or '…'} ({about.rstrip('.')})"
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        form = next((form for start, form in _FORMS.items() if pattern.startswith(start)), None)
        name = "has a name" if place[-1] == "[key]" else f"is {shown},"
        return f"{name} which does not fit; write {form or f'text like {pattern}'}"
    if kind not in _MESSAGES:
        return f"is wrong: {detail['msg'].lower()}"
    if kind == "string_type" and isinstance(detail["input"], int | float) and shown[0] != "o":
        example = example or f"it in quotes: {quoted(detail['input'])}"
    message = _MESSAGES[kind].format(value=shown, **context)
    return message.replace(_MAPPING, example).replace(_TEXT, example) if example else message


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
