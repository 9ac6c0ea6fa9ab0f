"""Causes and fixes of waiting pods, from three tables.

`reasons.yaml` is asked by the name of a row. In `messages.yaml` the first row whose pattern is in a
message counts, else what `kai_usage.scheduling` knows of schedulers.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import yaml

from kai_usage import scheduling
from kai_usage.scheduling import NOTHING, Around
from kai_usage.words import plain

_MAX_CHARACTERS_READ: Final = 4000
_MAX_CHARACTERS_SHOWN: Final = 240


class Reason(NamedTuple):
    """Why a pod waits, and what to do about it."""

    cause: str
    fix: str


@cache
def _table(name: str) -> Any:
    """The content of a table; its form differs by table."""
    file = files(__package__) / f"{name}.yaml"
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def reason(row: str, **values: object) -> Reason:
    """A row of `reasons.yaml`, with these values in its placeholders."""
    texts = _table("reasons")[row]
    cause = texts["cause"].format_map(values)
    fix = texts["fix"].format_map(values)
    return Reason(cause, fix)


def meaning(texts: Iterable[object], kubectl: str, about: Around = NOTHING) -> Reason | None:
    """What the first known one of some messages means; None if none is known.

    `kubectl` is the kubectl command for this cluster. `about` are the nodes and volumes around a
    pod without a node.
    """
    for text in texts:
        line = plain(text, _MAX_CHARACTERS_READ)
        known = _in_messages(line, kubectl) or _in_scheduling(line, kubectl, about)
        if known is not None:
            return known
    return None


def _in_messages(line: str, kubectl: str) -> Reason | None:
    """The first row of messages.yaml that fits."""
    for row in _table("messages"):
        match = re.search(row["pattern"], line)
        if match is not None:
            values = {
                "why": "",
                **match.groupdict(""),
                "text": line[:_MAX_CHARACTERS_SHOWN],
            }
            cause = _filled(row["cause"], values)
            fix = _filled(row["fix"], {"kubectl": kubectl})
            return Reason(cause, fix)
    return None


def _in_scheduling(line: str, kubectl: str, about: Around) -> Reason | None:
    """What a scheduler says by it, and what a user of the cluster can do."""
    known = scheduling.meaning(line, about)
    if known is None:
        return None
    row, values = known
    commands = {"kubectl": kubectl, "host": "kubectl", "cordoned": values["cordoned"]}
    cause = _filled(row.cause, values)
    fix = _filled(row.tell or row.fix, commands)
    return Reason(cause, fix)


def _filled(template: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", value)
    return plain(template)
