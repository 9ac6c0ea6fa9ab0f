"""A settings model without the wrong parts of a file; pydantic's errors as findings.

A finding names the key, the cause, and what to write instead.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kai_fleet.finding import Finding, Level
from kai_fleet.marks import REFUSAL, marked
from kai_fleet.releases import table
from kai_fleet.settings.sections.models import SET_SECRET, Location, fields_beside
from kai_fleet.wording import number_in, on_one_line, quoted, spelt_like

M = TypeVar("M", bound=BaseModel)
NAMESPACE: Final = "kai-fleet"
_PREFIX: Final = f"{NAMESPACE}:"
_ALIKE: Final = 0.7


def wrong_key(path: str, message: str, location: Location = ()) -> Finding:
    """A mistake at a key of a stack file; the message is `cause; fix`.

    `location` is the path in parts: a key may have dots, as `acme.io/cost-centre` has.
    """
    cause, _, fix = on_one_line(message).partition("; ")
    parts = [on_one_line(str(part)) for part in location if part != "[key]"]
    name = (parts or path.replace(":", ".").split("."))[-1]
    return Finding(Level.MANDATORY, path, "key", name, cause, fix, "config")


def key_path(location: Location) -> str:
    """`("teams", "ml", "gpus")` as `kai-fleet:teams.ml.gpus`."""
    return _PREFIX + ".".join(on_one_line(str(part)) for part in location if part != "[key]")


def own_keys(config: Any) -> dict[str, Any]:
    """The values of our keys in a stack's configuration, by what follows the prefix."""
    ours = config.items() if isinstance(config, Mapping) else ()
    return {k.removeprefix(_PREFIX): v for k, v in ours if str(k).startswith(_PREFIX)}


def misspelt(keys: Iterable[str]) -> list[Finding]:
    """Keys without a reader that look like ours.

    A key without a prefix is the project's for the engine, and unread by others.
    """
    found = list[Finding]()
    for key in keys:
        namespace, colon, _ = key.rpartition(":")
        bare = namespace.lower().replace("_", "-")
        alike = SequenceMatcher(None, bare, NAMESPACE).ratio() >= _ALIKE
        if not colon or (alike and namespace != NAMESPACE):
            cause = "is read by nobody, so what it declares would be removed"
            meant = _PREFIX + re.split("[^A-Za-z0-9]", key)[-1]
            fix = f"write {meant}, or indent it to where it belongs"
            found.append(wrong_key(on_one_line(key), f"{cause}; {fix}"))
    return found


def within(path: str, others: Iterable[str]) -> bool:
    """Whether a place is among others, lies in one of them, or holds one."""
    return any(f"{path}.".startswith(f"{o}.") or f"{o}.".startswith(f"{path}.") for o in others)


def validated(model: type[M], raw: Any) -> tuple[M | None, list[Finding]]:
    """A model without its wrong parts, None where too little is right; and every mistake."""
    places = list(marked(raw))
    found = [wrong_key(key_path(place), REFUSAL, place) for place in places]
    rest = _without(raw, places) if places else raw
    while True:  # leaving a wrong part out can show others
        try:
            return model.model_validate(rest), found
        except ValidationError as error:
            details = {each["loc"]: each for each in error.errors(include_url=False)}
        wrong = {key_path(at): (_message(detail, model), at) for at, detail in details.items()}
        known = [finding.path for finding in found]
        found += [wrong_key(path, *wrong[path]) for path in wrong if not within(path, known)]
        if (rest := _without(rest, details)) is None:
            return None, found


def _without(raw: Any, places: Iterable[Location]) -> Any:
    """A copy of `raw` without the wrong places; None where there is none of them.

    What holds a place is taken out where the place is an absent key, or in a list: without one of
    its items a list would say something else.
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
    return rest if out else None


_TEXTS: Final = table("mistakes", __package__)
_IS_WHOLE: Final = {"int_type": True, "float_type": False}
_SECRETS: Final = frozenset({"mirror", "registries", "kubeconfig", "dataSource"})


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong with a key, and what to write: `cause; fix`."""
    kind, place, context = detail["type"], detail["loc"], detail.get("ctx", {})
    # A password may stand in the wrong place of an account.
    shown = "of another form" if _SECRETS & set(place) else _shown(detail["input"])
    above = place[:-1] if isinstance(place[-1], int) else place  # of an item, that of the list
    fields, example = fields_beside(place, model), _TEXTS["examples"].get(above[-1])
    if kind == "extra_forbidden":
        names = [*map(str, fields)]
        close = spelt_like(str(place[-1]), names)
        fix = f"write {close}" if close else f"the keys here are {', '.join(names)}"
        return f"is an unknown key; {fix}"
    if kind == "missing":
        field = fields.get(place[-1])
        example = SET_SECRET if place[-1] == "password" else example
        about = example or f"… ({(field and field.description) or 'it is required'})"
        return f"is missing; write {place[-1]}: {about}"
    if kind == "string_pattern_mismatch":
        name = "has a name" if place[-1] == "[key]" else f"is {shown},"
        return f"{name} which does not fit; write {form_of(str(context['pattern']))}"
    if kind in _IS_WHOLE and (number := number_in(detail["input"], whole=_IS_WHOLE[kind])):
        return f"is {shown}; write it without quotes: {number}"
    if kind not in _TEXTS["messages"]:
        fix = re.sub("^Input should be ", "write ", detail["msg"])
        return f"is {shown}; {fix[0].lower()}{fix[1:]}"
    if kind == "string_type" and isinstance(detail["input"], list) and shown[0] != "o":
        example = example or f"one text, such as {place[-1]}: {_shown((*detail['input'], 'ml')[0])}"
    if kind == "string_type" and isinstance(detail["input"], int | float) and shown[0] != "o":
        example = example or f"it in quotes: {quoted(detail['input'])}"
    message = _TEXTS["messages"][kind].format(value=shown, **context)
    typed = kind in ("string_type", "dict_type", "model_type")
    return f"is {shown}; write {example}" if example and typed else message


def form_of(pattern: str) -> str:
    """What a text of a pattern is, in words; every pattern of a stack file has such words."""
    forms: Iterable[tuple[str, str]] = _TEXTS["forms"].items()
    return next(form for start, form in forms if pattern.startswith(start))


def _shown(value: Any) -> str:
    """A value as a message may show it: short, and never a mapping's content."""
    kinds = {dict: "a mapping", list: "a list", type(None): "empty"}
    text = kinds.get(type(value)) or repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
