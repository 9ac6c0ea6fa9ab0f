"""Finding: one problem that the settings, a rule or the doctor reports, with its fix."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kai_fleet.wording import number_with_noun, on_one_line

_RECORDED_FIELDS = ("check", "level", "path", "kind", "name", "cause", "fix")


class Level(StrEnum):
    """How bad a finding is.

    `mandatory` fails a preview, or something in a cluster is broken. `advisory` only warns. `info`
    reports what a tenant did inside its vCluster. `ok`: the check passed.
    """

    OK = "ok"
    INFO = "info"
    ADVISORY = "advisory"
    MANDATORY = "mandatory"


@dataclass(frozen=True, order=True)
class Command:
    """A command that a fix tells to run: `line` is what a shell takes."""

    line: str

    def __str__(self) -> str:
        """The command as a sentence has it, between backticks."""
        return f"`{self.line}`"


# A fix in parts: its text, and in it the commands to run.
Fix = tuple[str | Command, ...]


def sentence(fix: Fix) -> str:
    """The fix as users read it."""
    return "".join(map(str, fix))


def commands_of(fix: Fix) -> tuple[str, ...]:
    """The commands of a fix, as a shell takes them, in their order."""
    return tuple(part.line for part in fix if isinstance(part, Command))


@dataclass(frozen=True, order=True)
class Finding:
    """One problem."""

    level: Level
    path: str  # key of the stack file, URN of a resource, or name of the cluster; may be ""
    kind: str  # of the subject: `queue`, `KAI`, `Pod`
    name: str  # of the subject: `train in ml`
    cause: str  # what is wrong, as a predicate: `has children, and pods name it`
    fix: str = ""  # what to write or run instead, as an imperative; empty if nothing helps
    check: str = ""  # name of the rule or the check: `queue-tree`
    undecided: bool = False  # it is not known yet whether it is one: `Subject.undecided`
    commands: tuple[str, ...] = ()  # those in `fix`, as a shell takes them, in their order

    @property
    def subject(self) -> str:
        """Kind and name: `queue train in ml`."""
        return f"{self.kind} {self.name}".strip()

    @property
    def message(self) -> str:
        """Cause and fix as one sentence `CAUSE; FIX`, or the cause alone, by `on_one_line`."""
        return on_one_line("; ".join(filter(None, (self.cause, self.fix))))

    def record(self) -> dict[str, str]:
        """The fields that plans and the doctor write as JSON, each as a text.

        `undecided` is left out, and so is `commands`, which only the doctor writes.
        """
        return {name: str(getattr(self, name)) for name in _RECORDED_FIELDS}

    def __str__(self) -> str:
        """One line for a terminal or a log: `PATH: SUBJECT: MESSAGE [CHECK]`.

        Without a path the subject is there twice. Only the message is escaped.
        """
        return f"{self.path or self.subject}: {self.subject}: {self.message} [{self.check}]"


def split_at(commands: Iterable[str], text: str) -> Iterator[str | Command]:
    """Yield a text in parts: the commands that stand in it, in this order, and what is between.

    A command that is not between backticks after those before it is left out. A part may be "".
    """
    for command in map(Command, commands):
        before, mark, after = text.partition(str(command))
        if mark:
            yield before
            yield command
            text = after
    yield text


def report(findings: Sequence[Finding]) -> str:
    """A heading with the number of findings, and each finding on a line."""
    lines = [f"the stack's configuration has {number_with_noun(len(findings), 'mistake')}:"]
    lines += [f"  {finding}" for finding in findings]
    return "\n".join(lines)
