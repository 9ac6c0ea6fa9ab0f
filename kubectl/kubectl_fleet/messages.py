"""Causes and fixes of waiting pods, as sentences for a user of the cluster."""

from typing import NamedTuple

from kai_usage.messages import Meaning
from kai_usage.words import short_line


class Reason(NamedTuple):
    """Why a pod waits, and what to do about it."""

    cause: str
    fix: str


def in_sentences(meaning: Meaning, **places: str) -> Reason:
    """A cause and what to do, safe to show: advice for operators where there is none for users.

    `places` are values of placeholders in advice and commands: `kubectl`, the command for this
    cluster, and where the row has them `namespace` and `name` of the pod. The command for the
    cluster of the nodes, `host`, is `kubectl` alone. Raises KeyError for a placeholder without a
    value.
    """
    row, values = meaning
    placeholders = {**values, **places, "host": "kubectl"}
    commands = [f"`{command.format_map(placeholders)}`" for command in row.commands]
    advice = row.tell or row.fix
    return Reason(short_line(meaning.cause), short_line(advice.format(*commands, **placeholders)))
