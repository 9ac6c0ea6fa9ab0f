"""What messages of KAI, vCluster and Kubernetes mean, by the table in `known_messages.yaml`."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

_QUOTED = 240  # characters of a message in a cause


class Reason(NamedTuple):
    """Why something does not work, and what to do. `same` names the cause where its sentence has
    words or amounts that differ from pod to pod, `name` is that of a known message.
    """

    cause: str
    fix: str
    same: str = ""
    name: str = ""


def meaning(text: str) -> Reason | None:
    """What a message of an event, a condition or a container means; None for an unknown one.

    Places in its fix are not filled in yet: `ClusterState.explain` does.
    """
    for row in _table():
        match = re.search(row["pattern"], text, flags=re.DOTALL)
        if match is not None:
            cause = row["cause"]
            quoted = " ".join(text.split())[:_QUOTED]
            for key, value in {"what": "", **match.groupdict(""), "text": quoted}.items():
                cause = cause.replace(f"{{{key}}}", value.strip())
            same = row["name"] if "{text}" in row["cause"] else ""
            return Reason(" ".join(cause.split()), row["fix"], same, row["name"])
    return None


@cache
def _table() -> list[Mapping[str, str]]:
    """Rows of name, pattern, cause and fix; the first pattern that fits counts."""
    text = (files(__package__) / "known_messages.yaml").read_text(encoding="utf-8")
    rows: list[Mapping[str, str]] = yaml.safe_load(text)
    return rows
