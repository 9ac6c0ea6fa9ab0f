"""What the doctor says: one sentence of cause and one of cure for one cause."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final

from kubectl_fleet.kube.text import plain

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
        return {
            "check": self.check,
            "health": self.health.value,
            "cluster": self.cluster,
            "subject": self.subject,
            "cause": self.cause,
            "fix": self.fix,
            "count": len(self.things),
            "subjects": list(self.things),
        }
