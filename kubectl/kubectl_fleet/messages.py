"""Meanings of messages of events, conditions and containers, from `messages.yaml`."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

from kubectl_fleet.table import plain


class Reason(NamedTuple):
    """Why a pod waits, and what to do about it."""

    cause: str
    fix: str


@cache
def _known() -> list[dict[str, str]]:
    text = (files(__package__) / "messages.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text))


def meaning(texts: Iterable[object], kubectl: str) -> Reason | None:
    """Return what the first known of some messages means; None where none is known."""
    for text in texts:
        line = plain(text, 4000)
        for row in _known():
            if match := re.search(row["pattern"], line):
                cause = row["cause"]
                for key, value in {"why": "", **match.groupdict(""), "text": line[:240]}.items():
                    cause = cause.replace(f"{{{key}}}", value)
                return Reason(plain(cause), row["fix"].replace("{kubectl}", kubectl))
    return None
