"""Plans and diffs as Markdown, as GitHub and GitLab show it: for a pull request's comment."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kai_fleet.finding import Finding, Level
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import counted, without_controls
from kai_fleet_cli.diff.changes import HEADINGS, UNSET, Change, Summary
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, picture
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    written,
)

# A comment holds 65,536 characters; a table of this many lines is not read anyway.
_MOST_ROWS: Final = 100
_LONGEST_PICTURE: Final = 6_000
_CODE: Final = re.compile(r"(`[^`]+`)")
# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)
_SPECIAL: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})


def plan_page(plan: Plan) -> str:
    """The whole page, ending in a newline."""
    verdict = "**fine**" if plan.ok else "**refused**"
    parts = [f"## Stack {_text(plan.stack)}", f"{verdict}: {plan.counts}"]
    parts += ["### Problems", _problems(plan.problems) or "None: every rule holds."]
    if plan.resources:
        seen = picture(plan.resources)
        rows = ([*map(_text, cells)] for cells in seen.teams)
        parts += ["### Teams", _table(TEAM_COLUMNS, rows) if seen.teams else "None."]
        parts += ["### Queues"] if seen.trees else []
        for name, tree in seen.trees.items():
            parts += [f"**{_text(name)}**", _drawn(queue_flowchart(tree))]
    return "\n\n".join([*parts, UNSEEN]) + "\n"


def _drawn(flowchart: str) -> str:
    large = len(flowchart) > _LONGEST_PICTURE
    return "too large to draw" if large else f"```mermaid\n{flowchart}\n```"


def diff_page(report: DiffReport) -> str:
    """The whole page, ending in a newline."""
    compared = f"Compared with {_text(report.base.at)}."
    parts = [
        f"## Stack {_text(report.stack)}: {_text(report.verdict)}",
        _text(report.note) if report.note else compared,
        *_summary(report.summary),
    ]
    if report.changes and report.now:
        parts += _trees(report.base.resources, report.now.resources)
        parts.append(_folded(report.changes))
    problems = _problems(report.now.problems) if report.now else ""
    parts += ["### Rules", problems or "Every rule holds."]
    return "\n\n".join(parts) + "\n"


def _summary(summary: Summary) -> Iterator[str]:
    for part, items in summary.items():
        if not items:
            continue
        texts = ((item.team, f"{item.subject} {item.words}") for item in items)
        lines = [f"- **{_text(team)}**: {_prose(text)}" for team, text in texts]
        yield f"### {HEADINGS[part]}"
        yield "\n".join(lines[:_MOST_ROWS]) + _more(len(lines) - _MOST_ROWS, "line")


def _trees(before: Sequence[Registered], after: Sequence[Registered]) -> Iterator[str]:
    """The queue trees that change, before and after."""
    old, new = (
        {name: queue_flowchart(tree) for name, tree in picture(side).trees.items()}
        for side in (before, after)
    )
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"<details open><summary>Queues of {_text(name)}, before and after</summary>"
            yield f"Before:\n\n{_drawn(old[name])}" if name in old else "Before: none"
            yield f"After:\n\n{_drawn(new[name])}" if name in new else "After: none"
            yield "</details>"


def _folded(changes: Sequence[Change]) -> str:
    rows = []
    for change in changes:
        cells = [_text(change.team or HOST), change.kind, _text(change.label)]
        rows += [
            [*cells, _code(field.path), *(v if v == UNSET else _code(v) for v in field.shown())]
            for field in change.fields
        ] or [[*cells, "", "", ""]]
    table = _table(("team", "", "resource", "field", "before", "after"), rows[:_MOST_ROWS])
    head = f"<details><summary>{counted(len(changes), 'resource', 'differs')}</summary>"
    more = _more(len(rows) - _MOST_ROWS, "line")
    return f"{head}\n\n{table}{more}\n\n</details>"


def _more(number: int, thing: str) -> str:
    if number <= 0:
        return ""
    return f"\n\n… and {counted(number, thing)} more; `fleet diff --format json` has them all."


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown already, `_text` and `_code` make them."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(words: str) -> str:
    """Escape text for Markdown, on one line; it mentions no user."""
    return " ".join(without_controls(words).split()).translate(_SPECIAL)


def _prose(words: str) -> str:
    """Escape text; what stands between backticks stays code, to be copied."""
    parts = _CODE.split(" ".join(without_controls(words).split()))
    return "".join(
        _code(part[1:-1]) if n % 2 else part.translate(_SPECIAL) for n, part in enumerate(parts)
    )


def _code(value: str) -> str:
    """A code span of one line, also in a table's cell."""
    line = " ".join(without_controls(value).split()).replace("|", "\\|")
    if not line:
        return ""
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def _problems(problems: Iterable[Finding]) -> str:
    """A plan's problems as a list, those that stop a preview first."""
    lines = []
    for problem in sorted(problems, key=lambda each: each.level is not Level.MANDATORY):
        word = "**refused**" if problem.level is Level.MANDATORY else "warning"
        where = _code(problem.path or problem.subject)
        message = _prose(f"{problem.subject}: {problem.message}")
        lines.append(f"- {word} {_code(problem.check)} {where}<br>{message}")
    return "\n".join(lines)


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """A tree of queues for Mermaid with each one's shares, parents first, numbered in that order.

    Queues that pods may name have round corners.
    """
    tree, ids, lines = QueueIndex(queues), dict[str, str](), ["flowchart TD"]

    def draw(level: Iterable[DeclaredQueue], above: str | None) -> None:
        for queue in sorted(level, key=lambda queue: str(queue.name)):
            if (name := str(queue.name)) in ids:
                continue  # two of one name, or a ring: the rules report them
            ids[name] = f"q{len(ids)}"
            left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
            lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
            if above is not None:
                lines.append(f"  {above} --> {ids[name]}")
            draw(tree.children.get(name, ()), ids[name])

    draw((queue for queue in tree.queues if queue.parent not in tree.by_name), None)
    draw(tree.queues, None)  # of a ring, none is at the top
    return "\n".join(lines)


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            words = [f"{resource} {_amount(resource, share.quota)}"]
            if share.limit != UNLIMITED:
                words.append(f"limit {_amount(resource, share.limit or 0.0)}")
            if share.weight != 1.0:
                words.append(f"weight {_amount('gpu', share.weight)}")
            lines.append(", ".join(words))
    return "<br>".join(lines)


def _amount(resource: Any, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
