"""Causes and fixes of waiting pods, from three tables.

`reasons.yaml` is asked by the name of a row. In `messages.yaml`, and in `scheduling.yaml` for what
schedulers say, the first row whose pattern is in a message counts.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import yaml

from kubectl_fleet.placement import NOTHING, Placement
from kubectl_fleet.table import plain

_MAX_CHARACTERS_READ: Final = 4000
_MAX_CHARACTERS_SHOWN: Final = 240
_FIRST_ROW_ABOUT_NODES: Final = "no-room"  # of scheduling.yaml; those before are about the pod


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


def meaning(texts: Iterable[object], kubectl: str, about: Placement = NOTHING) -> Reason | None:
    """What the first known one of some messages means; None if none is known.

    `kubectl` is the kubectl command for this cluster. `about` are the nodes and volumes behind what
    a scheduler says.
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


def _in_scheduling(line: str, kubectl: str, about: Placement) -> Reason | None:
    """The first row of scheduling.yaml that fits.

    If that row is about nodes, and `about` has a row that objects prove, the proven one counts.
    """
    said = line.partition(" preemption: ")[0] or line  # behind it the same nodes are counted again
    rows = _table("scheduling")
    names = [row["name"] for row in rows]
    for number, row in enumerate(rows):
        match = re.search(row["pattern"], said)
        if match is None:
            continue
        is_about_nodes = number >= names.index(_FIRST_ROW_ABOUT_NODES)
        if about.row and is_about_nodes:
            row = rows[names.index(about.row)]
        values = {
            **match.groupdict(""),
            **about._asdict(),
            "text": said[:_MAX_CHARACTERS_SHOWN],
        }
        commands = {
            "0": "".join(f"`{command}`" for command in row.get("commands", ())),
            "kubectl": kubectl,
            "host": "kubectl",
            "cordoned": about.cordoned,
        }
        cause = _filled(row["cause"], values)
        fix = _filled(row.get("tell") or row["fix"], commands)
        return Reason(cause, fix)
    return None


def _filled(template: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", value)
    return plain(template)
