"""Finding: one problem that rules, settings or the doctor report, with its fix."""

from dataclasses import dataclass
from enum import StrEnum

from kai_fleet.wording import on_one_line


class Level(StrEnum):
    """`mandatory` fails a preview, or is broken in a cluster; `advisory` only warns."""

    OK = "ok"
    ADVISORY = "advisory"
    MANDATORY = "mandatory"


@dataclass(frozen=True, order=True)
class Finding:
    """One problem.

    Args:
        level: Effect on a preview, or state of an object in a cluster.
        path: Key of the stack file, URN of a resource, or name of the cluster.
        kind: Kind of the subject: `queue`, `KAI`, `Pod`.
        name: Its name: `train in ml`.
        cause: What is wrong, as a predicate: `has children, and pods name it`.
        fix: What to write or run instead, as an imperative. Empty where there is none.
        check: Name of the rule or the check: `queue-tree`.
        undecided: A value is unknown in the preview; the update decides.
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
        """Kind and name: `queue train in ml`."""
        return f"{self.kind} {self.name}".strip()

    @property
    def message(self) -> str:
        """Cause and fix as one sentence."""
        return on_one_line("; ".join(filter(None, (self.cause, self.fix))))

    def record(self) -> dict[str, str]:
        """The fields as in the JSON of plans and of the doctor."""
        names = ("check", "level", "path", "kind", "name", "cause", "fix")
        return {name: str(getattr(self, name)) for name in names}

    def __str__(self) -> str:
        """One line for a terminal or a log."""
        return f"{self.path or self.subject}: {self.subject}: {self.message} [{self.check}]"
