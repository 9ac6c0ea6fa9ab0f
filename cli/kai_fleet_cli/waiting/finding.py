"""What the doctor says: one sentence of cause and one of cure for one cause."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import yaml

from kai_fleet.kube.text import plain

_READ: Final = 4000  # characters of a message: tenants write some, and patterns take long for more
_QUOTED: Final = 240  # characters of a message in a cause
_LONGEST_FIX: Final = 20_000  # characters: a command may name twenty things


class Health(StrEnum):
    """How a thing is: `broken` needs an edit or a command, `warning` may need one."""

    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"


class ExitCode(IntEnum):
    """For the shell, and for CI."""

    HEALTHY = 0
    BROKEN = 1
    BLIND = 2  # the host, or the stack's file, could not be read: nothing is known
    UNREAD = 3  # nothing is broken of what was read, and a cluster could not be read at all


@dataclass(frozen=True)
class Finding:
    """One cause, and what it does harm to.

    `check` is the check's name, `cluster` is `host` or a team, `subject` names the thing in words
    (`pod train-a in namespace default`), or the things. `cause` is empty for what is well, and
    `fix` is what to do: a key to write, a command in backticks. `subjects` are all things that the
    cause does harm to; only `causes.merge_by_cause` gives more than one. `same` names the cause
    where its sentence has amounts that differ from thing to thing.

    Much of it is in words that tenants chose, so each text becomes one line without control
    characters, and only a fix has commands.
    """

    check: str
    health: Health
    cluster: str
    subject: str
    cause: str = ""
    fix: str = ""
    subjects: tuple[str, ...] = ()
    same: str = ""

    def __post_init__(self) -> None:
        """Make one line of each text."""
        for name in ("subject", "cause"):
            text = plain(getattr(self, name)).replace("`", "'")
            object.__setattr__(self, name, text)
        object.__setattr__(self, "fix", plain(self.fix, _LONGEST_FIX))

    @property
    def things(self) -> tuple[str, ...]:
        """Everything that it is about."""
        return self.subjects or (self.subject,)

    def record(self) -> dict[str, Any]:
        """The fields of the JSON."""
        names = ("check", "health", "cluster", "subject", "cause", "fix")
        fields = {name: str(getattr(self, name)) for name in names}
        return {**fields, "count": len(self.things), "subjects": list(self.things)}


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

    What is known of KAI, vCluster and Kubernetes stands in `known_messages.yaml`. Places in its fix
    are not filled in yet: `ReadCluster.explain` does.
    """
    text = text[:_READ]
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
