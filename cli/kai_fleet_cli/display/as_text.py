"""Plans and diffs for people at a terminal; colours only where the console is one."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from kai_fleet.finding import Finding, Level
from kai_fleet_cli.diff.changes import HEADINGS, Summary
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.display.queue_trees import queue_line
from kai_fleet_cli.display.terminal import print_line, print_table, print_wrapped
from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, picture

_COLOURS: Final[Mapping[str, str]] = {
    **{"refused": "red", "nothing changes": "green", "not compared": "yellow"},
    **{"lost": "red", "restarted": "magenta", "changed": "", "fine": "green"},
}
_MOST_ITEMS: Final = 40


def show_plan(plan: Plan, console: Console, *, config: Path | None = None) -> None:
    """Print a plan on a screen: what the rules say, then the teams.

    `config` is its stack file, where that is not the project's.
    """
    verdict = "fine" if plan.ok else "refused"
    print_line(console, f"stack {plan.stack}: ", (verdict, _COLOURS[verdict]), f" ({plan.counts})")
    for problem in sorted(plan.problems, key=lambda each: each.level is not Level.MANDATORY):
        show_problem(problem, console)
    if plan.resources:
        seen = picture(plan.resources)
        if seen.teams:
            print_table(console, TEAM_COLUMNS, seen.teams)
        if seen.trees:
            print_line(
                console, ("\n  queues that pods name, with the GPUs guaranteed to each", "dim")
            )
        for name, queues in seen.trees.items():
            print_wrapped(console, queue_line(queues), f"  {name}:", indent=6)
        console.print()
        of_file = f" --config {shlex.quote(str(config))}" if config else ""
        command = f".venv/bin/fleet plan --stack {plan.stack}{of_file} --format json"
        print_wrapped(console, f"each resource: {command}")


def show_diff(report: DiffReport, console: Console) -> None:
    """Print a diff: what follows from it, then what the rules say."""
    print_line(console, (report.stack, "bold"), f": {report.base.at} → work tree")
    if report.note:
        print_wrapped(console, report.note)
    show_summary(report.summary, console)
    for problem in report.now.problems if report.now else ():
        show_problem(problem, console)
    print_line(console, (report.verdict, _COLOURS.get(report.verdict, "")))


def show_summary(summary: Summary, console: Console) -> None:
    """Print what is refused, lost, restarted and changed."""
    for part, items in summary.items():
        if not items:
            continue
        print_line(console, (HEADINGS[part], f"bold {_COLOURS[part]}"))
        for item in items[:_MOST_ITEMS]:
            lead = Text.assemble("  ", (f"{item.team}:", "bold"))
            print_wrapped(console, f"{item.subject} {item.words}", lead, indent=6)
        if (more := len(items) - _MOST_ITEMS) > 0:
            print_line(console, f"  … and {more} more; --format json has them all")


def show_problem(problem: Finding, console: Console) -> None:
    """Print one problem, with its key or its subject first."""
    mandatory = problem.level is Level.MANDATORY
    word, colour = ("refused", "red") if mandatory else ("warning", "yellow")
    lead = Text.assemble((word, colour), " ", (f"[{problem.check}]", "bold"))
    print_wrapped(console, problem.path or problem.subject, lead)
    print_wrapped(console, problem.message, f"  {problem.subject}:", indent=4)
