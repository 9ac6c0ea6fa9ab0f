"""Causes and fixes of waiting pods: by the name of a row of `reasons.yaml`, and by messages."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import yaml

from kai_usage import messages, scheduling
from kai_usage.scheduling import NO_SURROUNDINGS, PodSurroundings
from kai_usage.words import short_line

_MAX_CHARACTERS: Final = 4000  # of a message that are read


class Reason(NamedTuple):
    """Why a pod waits, and what to do about it."""

    cause: str
    fix: str


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    """The rows of `reasons.yaml` by name, read once in a process."""
    file = files(__package__) / "reasons.yaml"
    table: dict[str, dict[str, str]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return table


def reason(row_name: str, **values: object) -> Reason:
    """A row of `reasons.yaml`, with these values in its placeholders.

    Others' texts among them have to be made safe before, by `short_line`; values without a
    placeholder are ignored. Raises KeyError for a row or a placeholder that is not there.
    """
    texts = _reasons()[row_name]
    cause = texts["cause"].format_map(values)
    fix = texts["fix"].format_map(values)
    return Reason(cause, fix)


def reason_of_messages(
    texts: Iterable[object], kubectl: str, surroundings: PodSurroundings = NO_SURROUNDINGS
) -> Reason | None:
    """What the first known one of some messages means, safe to show; None if none is known.

    A row of `messages.yaml` with advice for users counts before one of `scheduling.yaml`. Advice
    for operators is given where a row of the latter has none for users.

    Args:
        texts: The messages in order of priority; 4000 characters of each are read.
        kubectl: The kubectl command for this cluster, for the commands in the advice.
        surroundings: The nodes and volumes around a pod without a node, which decide between rows
            of `scheduling.yaml`.

    Raises:
        LookupError, TypeError, AttributeError: An object of the surroundings is malformed.
    """
    for text in texts:
        line = short_line(text, _MAX_CHARACTERS)
        known = messages.row_of_message(line, "user") or scheduling.row_of_scheduler(
            line, surroundings
        )
        if known is not None:
            row, values = known
            advice = row.tell or row.fix
            placeholders = {**values, "kubectl": kubectl, "host": "kubectl"}
            commands = [f"`{command.format_map(placeholders)}`" for command in row.commands]
            cause = row.cause.format_map(values)
            return Reason(short_line(cause), short_line(advice.format(*commands, **placeholders)))
    return None
