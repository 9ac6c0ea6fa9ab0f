"""What messages of KAI, vCluster and Kubernetes mean, by the table in `known_messages.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

_QUOTED = 240  # characters of a message in a cause


class Meaning(NamedTuple):
    """What a message means. `fix` names places as `ClusterState.filled_in` fills them in; `same`
    names the cause where its sentence quotes the message, which differs from pod to pod.
    """

    name: str
    cause: str
    fix: str
    same: str = ""


def meaning(text: str) -> Meaning | None:
    """What a message of an event, a condition or a container means; None for an unknown one."""
    for row in _table():
        match = re.search(row["pattern"], text, flags=re.DOTALL)
        if match is not None:
            cause = row["cause"]
            quoted = " ".join(text.split())[:_QUOTED]
            for key, value in {"what": "", **match.groupdict(""), "text": quoted}.items():
                cause = cause.replace(f"{{{key}}}", value.strip())
            same = row["name"] if "{text}" in row["cause"] else ""
            return Meaning(row["name"], " ".join(cause.split()), row["fix"], same)
    return None


def first_meaning(texts: Iterable[str]) -> Meaning | None:
    """The meaning of the first message that is known."""
    return next(filter(None, map(meaning, texts)), None)


@cache
def _table() -> list[Mapping[str, str]]:
    """Rows of name, pattern, cause and fix; the first pattern that fits counts."""
    text = (files(__package__) / "known_messages.yaml").read_text(encoding="utf-8")
    rows: list[Mapping[str, str]] = yaml.safe_load(text)
    return rows
