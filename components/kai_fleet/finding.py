"""Finding: one problem that rules, settings or the doctor report, with its fix."""

from dataclasses import dataclass
from enum import StrEnum

from kai_fleet.wording import on_one_line


class Level(StrEnum):
    """`mandatory` fails a preview, or is broken in a cluster; `advisory` only warns. `info` is what
    a tenant did inside its own cluster.
    """

    OK = "ok"
    INFO = "info"
    ADVISORY = "advisory"
    MANDATORY = "mandatory"


@dataclass(frozen=True, order=True)
class Finding:
    """One problem."""

    level: Level
    path: str  # key of the stack file, URN of a resource, or name of the cluster
    kind: str  # of the subject: `queue`, `KAI`, `Pod`
    name: str  # of the subject: `train in ml`
    cause: str  # what is wrong, as a predicate: `has children, and pods name it`
    fix: str = ""  # what to write or run instead, as an imperative; empty where there is none
    check: str = ""  # name of the rule or the check: `queue-tree`
    undecided: bool = False  # a value is unknown in the preview; the update decides

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
