"""What messages of KAI, vCluster and Kubernetes about pods mean, by tables of patterns."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import yaml

# Characters of a message that are read. Tenants write some messages, and patterns take long for
# more.
MOST_READ = 4000
_MOST_QUOTED = 240  # characters of a message in a cause
# Who is to follow the advice: the operator of the platform, or a user of the cluster alone.
Reader = Literal["operator", "user"]
# PyYAML without libyaml, as a user may have built it, has the slow loader only.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Row(NamedTuple):
    """A row of a table: what a message with this pattern means, with placeholders.

    `name` is unique in its table; only rows of `messages.yaml` may share one. `pattern` is searched
    in a message, and `.` in it is a line break too; in `waiting.yaml` it is "", because objects
    decide there. `fix` is for the operator of the platform, `tell` for a user of the cluster alone;
    "" for none. Without `tell` a `fix` of `scheduling.yaml` or `waiting.yaml` is for the user, too.
    `{0}` in both stands for the first of `commands`. The head of each table says which other
    placeholders there are.
    """

    name: str
    pattern: str
    cause: str
    fix: str = ""
    tell: str = ""
    commands: Sequence[str] = ()


class Meaning(NamedTuple):
    """A row, and values for its placeholders.

    Control characters stay in the values. Those for further placeholders of advice and commands,
    such as `kubectl`, are the caller's to add.
    """

    row: Row
    values: Mapping[str, object]

    @property
    def cause(self) -> str:
        """The cause of the row with the values. Raises KeyError if one that it needs is absent."""
        return self.row.cause.format_map(self.values)


@cache
def rows(table: Literal["messages", "scheduling"]) -> tuple[Row, ...]:
    """The rows of a table in order of priority: the first one that fits a message counts."""
    return tuple(Row(**fields) for fields in content(table))


@cache
def content(table: Literal["messages", "scheduling", "waiting"]) -> Any:
    """The YAML of a table, parsed: a list of rows, of `waiting` a mapping of rows by name.

    Do not change it: it is read once in a process.
    """
    text = (files(__package__) / f"{table}.yaml").read_bytes()
    return yaml.load(text, _LOADER)


def quoted(message: str) -> str:
    """The first 240 characters of a message on one line, as a cause quotes it; no `…` if it is cut.

    Control characters stay: show it after `short_line` only.
    """
    return " ".join(message.split())[:_MOST_QUOTED]


def row_of_message(message: str, advice_for: Reader) -> Meaning | None:
    """The row of `messages.yaml` for a message, and values for its placeholders; None without one.

    The first row that fits counts; one without advice for this reader is passed over. Only the
    first 4000 characters are read. The values are `text`, the quoted message, `what`, which may be
    "", and the other groups of the pattern, without spaces around them; a group that matched
    nothing is "".
    """
    text = message[:MOST_READ]
    for known in rows("messages"):
        advice = known.fix if advice_for == "operator" else known.tell
        match = re.search(known.pattern, text, re.DOTALL)
        if advice and match:
            values = {"what": "", "text": quoted(message)}
            for group, matched in match.groupdict("").items():
                values[group] = matched.strip()
            return Meaning(known, values)
    return None
