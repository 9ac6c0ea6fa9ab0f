"""A diff as Markdown, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from kai_fleet.wording import counted
from kai_fleet_cli.diff.changes import Change
from kai_fleet_cli.diff.report import Report
from kai_fleet_cli.diff.sentences import HOST
from kai_fleet_cli.display import markdown
from kai_fleet_cli.plan import mermaid
from kai_fleet_cli.plan.as_markdown import team_table

# A comment holds 65,536 characters; a table of this many lines is not read anyway.
MOST_ROWS: Final = 100
LONGEST_VALUE: Final = 120
BEFORE_A_CHANGE: Final = 40
LONGEST_PICTURE: Final = 6_000


def page(report: Report) -> str:
    """The whole page, ending in a newline."""
    parts = [f"## Stack {markdown.text(report.stack)}: {report.verdict}"]
    if report.note:
        parts.append(markdown.text(report.note))
    else:
        parts.append(f"Compared with {markdown.code(report.base.ref)} ({report.base.short}).")
    if report.shows_stack:
        if report.base.problems:
            parts.append(f"At the base:\n\n{markdown.problems(report.base.problems)}")
        if report.after.teams:
            parts.append(team_table(report.after))
    parts += _meaning(report)
    parts += _pictures(report)
    changes = [*report.difference.changed, *report.difference.replaced]
    if changes:
        parts.append(_fields(changes))
    for kind in ("created", "replaced", "deleted"):
        if report.difference.parts[kind]:
            parts.append(_folded(kind, report.difference.parts[kind]))
    parts.append("### Rules")
    parts.append(markdown.problems(report.problems) or _all_hold(report))
    return "\n\n".join(parts) + "\n"


def _meaning(report: Report) -> Iterator[str]:
    lines: list[str] = []
    for item in report.sentences:
        parts = [markdown.text(part) for part in item.parts]
        several = len(parts) > 1
        lines.append(f"- **{markdown.text(item.subject)}**:{'' if several else f' {parts[0]}'}")
        lines += [f"  - {part}" for part in parts if several]
    lines += [
        f"- {markdown.code(key)} is encrypted anew: only the engine can say if it changed"
        for key in report.encrypted_anew
    ]
    if lines:
        yield "\n".join(lines)
    if report.sentences and report.untouched:
        yield f"Other teams untouched: {markdown.text(', '.join(report.untouched))}."


def _pictures(report: Report) -> Iterator[str]:
    """The pools and the queue trees that change, before and after."""
    if not report.compared:
        return
    before, after = report.before, report.after
    pools = tuple(mermaid.pools(seen.teams.values()) for seen in (before, after))
    if pools[0] != pools[1]:
        yield _two("GPUs by node pool", *pools)
    trees = [
        {HOST: seen.host} | {n: t.inside for n, t in seen.teams.items()} for seen in (before, after)
    ]
    for name in sorted({*trees[0], *trees[1]}):
        drawn = tuple(
            mermaid.queue_tree(tree[name].queues) if name in tree and tree[name].queues else ""
            for tree in trees
        )
        if drawn[0] != drawn[1]:
            yield _two(f"Queues of {name}", *drawn)


def _two(title: str, before: str, after: str) -> str:
    """A picture of before and one of after, folded."""
    shown = []
    for word, drawn in (("Before", before), ("After", after)):
        if len(drawn) > LONGEST_PICTURE:
            shown.append(f"{word}: too large to draw")
        else:
            shown.append(f"{word}:\n\n```mermaid\n{drawn}\n```" if drawn else f"{word}: none")
    summary = f"<summary>{markdown.text(title)}, before and after</summary>"
    return "\n\n".join([f"<details open>{summary}", *shown, "</details>"])


def _fields(changes: list[Change]) -> str:
    rows = [
        (
            markdown.text(change.team or HOST),
            markdown.text(change.label),
            markdown.code(item.path),
            _value(item.old, item.new),
            _value(item.new, item.old),
        )
        for change in changes
        for item in change.fields
    ]
    if not rows:
        return ""
    table = markdown.table(("team", "resource", "field", "before", "after"), rows[:MOST_ROWS])
    return table + _more(len(rows) - MOST_ROWS, "field")


def _folded(kind: str, changes: tuple[Change, ...]) -> str:
    lines = [
        f"- {markdown.text(change.team or HOST)}: {markdown.text(change.label)}"
        + (f": {markdown.text(change.reason)}" if change.reason else "")
        for change in changes
    ]
    summary = f"<summary>{counted(len(changes), 'resource')} {kind}</summary>"
    shown = "\n".join(lines[:MOST_ROWS]) + _more(len(lines) - MOST_ROWS, "resource")
    return f"<details>{summary}\n\n{shown}\n\n</details>"


def _more(number: int, thing: str) -> str:
    if number <= 0:
        return ""
    return f"\n\n… and {counted(number, thing)} more; `fleet diff --format json` has them all."


def _value(value: object, other: object) -> str:
    """A long one from a little before the place where it differs from the other."""
    if value is None:
        return "unset"
    said = str(value)
    pairs = zip(said, str(other), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    begin = same - BEFORE_A_CHANGE if same > LONGEST_VALUE - BEFORE_A_CHANGE else 0
    shown = said[begin : begin + LONGEST_VALUE]
    cut = "…" if begin + len(shown) < len(said) else ""
    return markdown.code(f"{'…' if begin else ''}{shown}{cut}")


def _all_hold(report: Report) -> str:
    return "Every rule holds." if report.now is not None else "There is nothing to judge."
