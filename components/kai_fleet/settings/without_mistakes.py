"""A settings model without the parts of a file that are wrong, and what is wrong with those."""

import copy
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kai_fleet.settings.mistakes import (
    Location,
    Mistake,
    key_path,
    misspelt,
    mistakes,
    within,
)

M = TypeVar("M", bound=BaseModel)


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
                m for m in mistakes(error, model, rest, elsewhere) if not within(m.path, dropped)
            ]
            dropped += [key_path(place) for place in misspelt(error, model, rest)]
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
