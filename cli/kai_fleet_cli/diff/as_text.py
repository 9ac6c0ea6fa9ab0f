"""A diff for people at a terminal: what it means, then resource by resource."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from kai_fleet_cli.diff.changes import Change, Field
from kai_fleet_cli.diff.report import Report
from kai_fleet_cli.diff.sentences import HOST
from kai_fleet_cli.plan import as_text
from kai_fleet_cli.plan.team_table import team_table

SIGNS = {
    "created": "[green]+[/]",
    "changed": "[yellow]~[/]",
    "replaced": "[magenta]±[/]",
    "deleted": "[red]-[/]",
}
_COLOURS = {"refused": "red", "nothing changes": "green", "not compared": "yellow"}


def show(report: Report, console: Console) -> None:
    """Print a diff; colours only where `console` is a terminal."""
    console.print(
        f"[bold]{escape(report.stack)}[/]: {escape(report.base.ref)}"
        f" ({report.base.short}) → work tree",
        highlight=False,
        soft_wrap=True,
    )
    if report.note:
        _line(console, escape(report.note))
    for problem in report.base.problems if report.shows_stack else ():
        _line(console, as_text.line(problem, "at the base: "))
    if report.shows_stack and report.after.teams:
        console.print(team_table(report.after))
    for sentence in report.sentences:
        _line(console, f"[bold]{escape(sentence.subject)}[/]: {escape(sentence.parts[0])}")
        for part in sentence.parts[1:]:
            _line(console, f"{' ' * (len(sentence.subject) + 2)}{escape(part)}")
    if report.sentences and report.untouched:
        _line(console, f"other teams untouched: {escape(', '.join(report.untouched))}")
    for key in report.encrypted_anew:
        _line(console, f"{escape(key)} is encrypted anew: only the engine can say if it changed")
    if not report.difference.same:
        console.print(_tree(report))
    for problem in report.problems:
        _line(console, as_text.line(problem))
    colour = _COLOURS.get(report.verdict)
    _line(console, f"[{colour}]{report.verdict}[/]" if colour else report.verdict)


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _tree(report: Report) -> Tree:
    root = Tree("changes", highlight=False)
    branches: dict[str, Tree] = {}
    entries = [
        (change.team, change.urn, kind, change)
        for kind, part in report.difference.parts.items()
        for change in part
    ]
    for team, _, kind, change in sorted(entries, key=lambda entry: entry[:3]):
        branch = branches.get(team)
        if branch is None:
            branch = branches[team] = root.add(f"[bold]{escape(team or HOST)}[/]")
        leaf = branch.add(_label(kind, change))
        for item in change.fields:
            leaf.add(_field(item))
    return root


def _label(kind: str, change: Change) -> str:
    reason = f" [dim]{escape(change.reason)}[/]" if change.reason else ""
    return f"{SIGNS[kind]} {escape(change.label)} {kind}{reason}"


def _field(item: Field) -> str:
    return f"{escape(item.path)}: [red]{_value(item.old)}[/] → [green]{_value(item.new)}[/]"


def _value(value: object) -> str:
    return "unset" if value is None else escape(str(value))
