"""Why pods wait: rows of `reasons.yaml`, and of `messages.yaml` by the text of a message."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from kubectl_fleet.table import plain


class Reason(NamedTuple):
    """Why a pod waits, and what to do about it."""

    cause: str
    fix: str


@cache
def _table(name: str) -> Any:
    return yaml.safe_load((files(__package__) / f"{name}.yaml").read_text(encoding="utf-8"))


def reason(row: str, **values: object) -> Reason:
    """Return a row of `reasons.yaml` with these values in its placeholders."""
    texts = _table("reasons")[row]
    return Reason(texts["cause"].format_map(values), texts["fix"].format_map(values))


def meaning(texts: Iterable[object], kubectl: str) -> Reason | None:
    """Return what the first known of some messages means; None where none is known."""
    for text in texts:
        line = plain(text, 4000)
        for row in _table("messages"):
            if match := re.search(row["pattern"], line):
                cause = row["cause"]
                for key, value in {"why": "", **match.groupdict(""), "text": line[:240]}.items():
                    cause = cause.replace(f"{{{key}}}", value)
                return Reason(plain(cause), row["fix"].replace("{kubectl}", kubectl))
    return None
