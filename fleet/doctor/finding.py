"""What the doctor says: one sentence of cause and one of cure for one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


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


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    `check` is the check's name, `cluster` is `host` or a team, `subject` names the thing in words
    (`pod train-a in namespace default`). `cause` is empty for what is well, and `fix` is a command
    to run or a key to write.
    """

    check: str
    health: Health
    cluster: str
    subject: str
    cause: str = ""
    fix: str = ""

    def record(self) -> dict[str, str]:
        """The six fields of the JSON."""
        return {
            "check": self.check,
            "health": self.health.value,
            "cluster": self.cluster,
            "subject": self.subject,
            "cause": self.cause,
            "fix": self.fix,
        }
