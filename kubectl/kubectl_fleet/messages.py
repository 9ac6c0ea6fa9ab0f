"""Why pods wait: rows of `reasons.yaml`, and by the text of a message of `messages.yaml` and, for
what schedulers say, of `scheduling.yaml`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from kubectl_fleet.placement import NOTHING, Placement
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


def meaning(texts: Iterable[object], kubectl: str, about: Placement = NOTHING) -> Reason | None:
    """Return what the first known of some messages means; None where none is known.

    `about` are the nodes and volumes behind what a scheduler says.
    """
    for text in texts:
        line = plain(text, 4000)
        if known := _of_others(line, kubectl) or _of_schedulers(line, kubectl, about):
            return known
    return None


def _of_others(line: str, kubectl: str) -> Reason | None:
    for row in _table("messages"):
        if match := re.search(row["pattern"], line):
            values = {"why": "", **match.groupdict(""), "text": line[:240]}
            return Reason(_filled(row["cause"], values), _filled(row["fix"], {"kubectl": kubectl}))
    return None


def _of_schedulers(line: str, kubectl: str, about: Placement) -> Reason | None:
    """What the first row that fits means; or the row that objects prove, where it is of nodes."""
    said = line.partition(" preemption: ")[0] or line  # what follows counts the same nodes again
    rows = _table("scheduling")
    names = [row["name"] for row in rows]
    for row in rows:
        if match := re.search(row["pattern"], said):
            of_nodes = names.index(row["name"]) >= names.index("no-room")
            counts = rows[names.index(about.row)] if about.row and of_nodes else row
            values = {**match.groupdict(""), **about._asdict(), "text": said[:240]}
            commands = {"kubectl": kubectl, "host": "kubectl", "cordoned": about.cordoned}
            fix = counts.get("tell") or counts["fix"]
            return Reason(_filled(counts["cause"], values), _filled(fix, commands))
    return None


def _filled(template: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", value)
    return plain(template)
