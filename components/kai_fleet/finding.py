"""What rules, settings and the doctor report: one cause at one place, and its fix."""

from dataclasses import dataclass
from enum import StrEnum

from kai_fleet.wording import on_one_line


class Level(StrEnum):
    """`mandatory` stops a preview, or is broken in a cluster; `advisory` is only shown."""

    OK = "ok"
    ADVISORY = "advisory"
    MANDATORY = "mandatory"


@dataclass(frozen=True, order=True)
class Finding:
    """One cause.

    Args:
        level: What it does to a preview, or how a thing in a cluster is.
        path: Key of the stack file, URN of a resource, or name of the cluster.
        kind: Kind of the thing: `queue`, `KAI`, `Pod`.
        name: Its name: `train in ml`.
        cause: What is wrong, as a predicate: `has children, and pods name it`.
        fix: What to write or run instead, as an imperative. Empty where there is none.
        check: Name of the rule or the check: `queue-tree`.
        undecided: A value is not known yet; the update decides.
    """

    level: Level
    path: str
    kind: str
    name: str
    cause: str
    fix: str = ""
    check: str = ""
    undecided: bool = False

    @property
    def subject(self) -> str:
        """The thing in words: `queue train in ml`."""
        return f"{self.kind} {self.name}".strip()

    @property
    def message(self) -> str:
        """Cause and fix as one sentence."""
        return on_one_line("; ".join(filter(None, (self.cause, self.fix))))

    def record(self) -> dict[str, str]:
        """The fields of a plan's JSON and a doctor's."""
        names = ("check", "level", "path", "kind", "name", "cause", "fix")
        return {name: str(getattr(self, name)) for name in names}

    def __str__(self) -> str:
        """One line for a terminal or a log."""
        return f"{self.path or self.subject}: {self.subject}: {self.message} [{self.check}]"
