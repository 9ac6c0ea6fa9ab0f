"""A diff as Markdown, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleet import markdown
from fleet.diffs.diff import Change
from fleet.diffs.diff_report import SAME, Report
from fleet.diffs.diff_words import HOST
from fleet.plan_markdown import team_table
from fleet.wording import counted

# A comment holds 65,536 characters; a table of this many lines is not read anyway.
MOST_ROWS: Final = 100
LONGEST_VALUE: Final = 120


def page(report: Report) -> str:
    """The whole page, ending in a newline."""
    parts = [f"## Stack {markdown.text(report.stack)}: {_verdict(report)}"]
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


def _fields(changes: list[Change]) -> str:
    rows = [
        (
            markdown.text(change.team or HOST),
            markdown.text(change.label),
            markdown.code(item.path),
            _value(item.old),
            _value(item.new),
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


def _value(value: object) -> str:
    if value is None:
        return "unset"
    said = str(value)
    return markdown.code(said if len(said) <= LONGEST_VALUE else f"{said[:LONGEST_VALUE]}…")


def _verdict(report: Report) -> str:
    if report.now is not None and report.now.exit_code:
        return "refused"
    if report.now is None:
        return "its file is gone"
    if report.exit_code == SAME:
        return "nothing changes"
    if not report.compared:
        return "not compared"
    parts = report.difference.parts.items()
    counts = [f"{len(part)} {kind}" for kind, part in parts if part]
    if report.encrypted_anew:
        counts.append(f"{len(report.encrypted_anew)} encrypted anew")
    return ", ".join(counts)


def _all_hold(report: Report) -> str:
    return "Every rule holds." if report.now is not None else "There is nothing to judge."
