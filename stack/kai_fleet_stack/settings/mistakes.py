"""Validate part of a stack file with a model, and turn pydantic's errors into findings.

A finding names the key, the cause, and what to write instead.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kai_fleet.marks import REFUSAL, paths_of_marks
from kai_fleet.releases import table
from kai_fleet.values import quoted
from kai_fleet.wording import number_in, on_one_line, spelt_like
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.key_paths import (
    KEY_ITSELF,
    NAMESPACE,
    PREFIX,
    Location,
    key_path,
    overlaps,
    shown_parts,
)
from kai_fleet_stack.settings.sections.models import LIST_CONTEXTS, SET_SECRET, fields_beside

M = TypeVar("M", bound=BaseModel)
# Ratio of difflib from which another namespace is taken for a misspelt one of ours.
_ALIKE = 0.7
_TEXTS = table("mistakes", __package__)
# Errors of numbers, and whether the number has to be whole.
_WHOLE_BY_ERROR = {"int_type": True, "float_type": False}
# Errors of types, for which an example helps more than the type's name.
_TYPE_ERRORS = ("string_type", "dict_type", "model_type")
# Keys below which a value may be a password.
_SECRETS = frozenset({"mirror", "registries", "kubeconfig", "dataSource"})
_HIDDEN = "of another form"  # shown in place of a value below one of these
_MOST_SHOWN = 60  # characters of a value


def wrong_key(path: str, message: str, location: Location = ()) -> Finding:
    """A mistake at a key of a stack file.

    Args:
        path: the key path, for people; the caller has escaped its control characters.
        message: `cause; fix`, or a cause alone; control characters in it are escaped.
        location: the path in parts, if a key in it may have dots: `acme.io/cost-centre`. The
            finding has the last part as its name.
    """
    cause, _, fix = on_one_line(message).partition("; ")
    parts = shown_parts(location) or path.replace(":", ".").split(".")
    # A user may write backticks into a message, so only the command that we write there is one.
    commands = (LIST_CONTEXTS.line,) if str(LIST_CONTEXTS) in fix else ()
    return Finding(Level.MANDATORY, path, "key", parts[-1], cause, fix, "config", commands=commands)


def own_keys(config: object) -> dict[str, Any]:
    """The `kai-fleet:` keys of a stack's configuration, without the prefix.

    Empty if the configuration is no mapping.
    """
    if not isinstance(config, Mapping):
        return {}
    return {
        key.removeprefix(PREFIX): value
        for key, value in config.items()
        if str(key).startswith(PREFIX)
    }


def misspelt(keys: Iterable[str]) -> list[Finding]:
    """Mistakes for keys that are none of ours: without a namespace, or with one similar to ours.

    The engine reads a key without a namespace as one of the project's; `own_keys` of a file does
    not. `keys` are those of a whole configuration. A namespace is what is before the last colon.
    """
    mistakes = list[Finding]()
    for key in keys:
        namespace, colon, _ = key.rpartition(":")
        spelling = namespace.lower().replace("_", "-")
        is_similar = SequenceMatcher(None, spelling, NAMESPACE).ratio() >= _ALIKE
        is_misspelt = is_similar and namespace != NAMESPACE
        if colon and not is_misspelt:
            continue
        meant = PREFIX + re.split("[^A-Za-z0-9]", key)[-1]
        cause = "is read by nobody, so what it declares would be removed"
        fix = f"write {meant}, or indent it to where it belongs"
        mistakes.append(wrong_key(on_one_line(key), f"{cause}; {fix}"))
    return mistakes


def model_and_mistakes(model: type[M], raw: object) -> tuple[M | None, list[Finding]]:
    """The model without its wrong keys (None if nothing usable is left), and all mistakes.

    Leaving out a wrong key can show more mistakes, which are reported unless they are above or
    below a key that is wrong already. A text with a mark of Pulumi's protocol is a mistake, too:
    these are first. `raw`, the keys without `kai-fleet:`, stays as it is.

    Raises:
        IndexError: `raw` is no mapping.
        KeyError, StopIteration: mistakes.yaml lacks words for a mistake, see `_message`.
    """
    marks = list(paths_of_marks(raw))
    mistakes = [wrong_key(key_path(location), REFUSAL, location) for location in marks]
    rest = _without(raw, marks) if marks else raw
    while True:
        try:
            return model.model_validate(rest), mistakes
        except ValidationError as error:
            details = {detail["loc"]: detail for detail in error.errors(include_url=False)}
        reported = [mistake.path for mistake in mistakes]
        # One mistake for each path: errors at several forms of a value have one path.
        by_path = {key_path(location): location for location in details}
        for path, location in by_path.items():
            if not overlaps(path, reported):
                mistakes.append(wrong_key(path, _message(details[location], model), location))
        rest = _without(rest, details)
        if rest is None:
            return None, mistakes


def _without(raw: object, locations: Iterable[Location]) -> object | None:
    """A copy of `raw` without the values at these locations; None if nothing could be left out.

    If the key is absent, or is below a list, the value above it is left out: a list without one of
    its elements would mean something else. There is none above an absent key of the top.
    """
    rest = copy.deepcopy(raw)
    removed = list[Location]()
    for location in locations:
        if any(location[: len(above)] == above for above in removed):
            continue
        depth = _remove(rest, location)
        if depth:
            removed.append(location[:depth])
    return rest if removed else None


def _remove(value: object, location: Location) -> int:
    """Remove in place the deepest value on the way to a location that is in a mapping.

    Gives how many keys of the location lead to it; 0 if the first is absent: nothing is removed.
    """
    above: dict[str | int, object] | None = None
    depth = 0
    for key in location:
        if not isinstance(value, dict) or key not in value:
            break
        above = value
        value = value[key]
        depth += 1
    if above is not None:
        del above[location[depth - 1]]
    return depth


def _message(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Cause and fix for an error of pydantic: `cause; fix`. The first case that fits decides.

    Shows no value at or below a key that may have a secret. The text of a validator of ours is
    shown in any case, so it must not have a secret.

    Args:
        error: has at least one key in `loc`.
        model: the model of the whole file, for the keys beside a wrong one.

    Raises:
        KeyError: the key is missing and has no example in mistakes.yaml.
        StopIteration: a pattern has no words there.
    """
    error_type = error["type"]
    location = error["loc"]
    key = location[-1]
    value = error["input"]
    context = error.get("ctx", {})
    is_hidden = bool(_SECRETS & set(location))
    shown = _HIDDEN if is_hidden else _shown(value)
    fields = fields_beside(location, model)
    if error_type == "extra_forbidden":
        return _unknown_key(str(key), [str(name) for name in fields])
    if error_type == "missing":
        return _missing_key(key)
    if error_type == "string_pattern_mismatch":
        subject = "has a name" if key == KEY_ITSELF else f"is {shown},"
        return f"{subject} which does not fit; write {form_of(str(context['pattern']))}"
    number = (
        number_in(value, whole=_WHOLE_BY_ERROR[error_type]) if error_type in _WHOLE_BY_ERROR else ""
    )
    if number:
        return f"is {shown}; write it without quotes: {number}"
    if error_type not in _TEXTS["messages"]:
        fix = re.sub("^Input should be ", "write ", error["msg"])
        return f"is {shown}; {fix[0].lower()}{fix[1:]}"
    example = _example(location, model)
    if not example and error_type == "string_type" and not is_hidden:
        example = _as_text(key, value)
    if example and error_type in _TYPE_ERRORS:
        return f"is {shown}; write {example}"
    return str(_TEXTS["messages"][error_type].format(value=shown, **context))


def _unknown_key(key: str, names: list[str]) -> str:
    """`cause; fix` with the most similar of the keys here, else with all of them."""
    close = spelt_like(key, names)
    fix = f"write {close}" if close else f"the keys here are {', '.join(names)}"
    return f"is an unknown key; {fix}"


def _missing_key(key: str | int) -> str:
    """`cause; fix` with an example. Raises KeyError for a key that has none in mistakes.yaml."""
    examples = _TEXTS["examples"] | _TEXTS["missing"]
    example = SET_SECRET if key == "password" else examples[key]
    return f"is missing; write {key}: {example}"


def _example(location: Location, model: type[BaseModel]) -> str:
    """An example for a field, for an element of a list that of the list; "" if none is known.

    A name that users choose has none: a team may be called `queues`.
    """
    if isinstance(location[-1], int):
        location = location[:-1]
    key = location[-1]
    is_field = key in fields_beside(location, model)
    return str(_TEXTS["examples"].get(key, "")) if is_field else ""


def _as_text(key: str | int, value: object) -> str:
    """How to write a list, a number or a boolean as the text that its key takes; else "".

    For a list that is its first element, `ml` for an empty one.
    """
    if isinstance(value, list):
        first = [*value, "ml"][0]
        return f"one text, such as {key}: {_shown(first)}"
    if isinstance(value, int | float):
        return f"it in quotes: {quoted(value)}"
    return ""


def form_of(pattern: str) -> str:
    """The words for a pattern of a stack file: the first in mistakes.yaml whose beginning it has.

    Raises StopIteration for a pattern without words.
    """
    forms: Iterable[tuple[str, str]] = _TEXTS["forms"].items()
    return next(words for beginning, words in forms if pattern.startswith(beginning))


def _shown(value: object) -> str:
    """A value for a message: at most 60 characters of its repr; no content of a mapping or a list.

    `empty` for None.
    """
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}…"
