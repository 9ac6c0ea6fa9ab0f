"""Plans and diffs for people at a terminal; colours only where the console is one."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console

from kai_fleet.finding import Finding, Level
from kai_fleet_cli.diff.changes import HEADINGS, Summary
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.display.terminal import print_line, print_table
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, picture

_COLOURS: Final[Mapping[str, str]] = {
    **{"refused": "red", "nothing changes": "green", "not compared": "yellow"},
    **{"lost": "red", "granted": "yellow", "secret": "yellow", "restarted": "magenta"},
    **{"changed": "", "fine": "green"},
}
_MOST_ITEMS: Final = 40


def show_plan(plan: Plan, console: Console) -> None:
    """Print a plan: what the rules say, then the teams."""
    verdict = "fine" if plan.ok else "refused"
    print_line(console, f"stack {plan.stack}: ", (verdict, _COLOURS[verdict]), f" ({plan.counts})")
    show_problems(plan.problems, console)
    if plan.resources and (teams := picture(plan.resources).teams):
        print_table(console, TEAM_COLUMNS, teams)
    print_line(console, UNSEEN)


def show_diff(report: DiffReport, console: Console) -> None:
    """Print a diff: what follows from it, then what the rules say."""
    print_line(console, (report.stack, "bold"), f": {report.base.at} → work tree")
    if report.note:
        print_line(console, report.note)
    show_summary(report.summary, console)
    show_problems(report.now.problems if report.now else (), console)
    print_line(console, (report.verdict, _COLOURS.get(report.verdict, "")))


def show_summary(summary: Summary, console: Console) -> None:
    """Print the lists of a summary, the worst first."""
    for part, items in summary.items():
        if not items:
            continue
        print_line(console, (HEADINGS[part], f"bold {_COLOURS[part]}"))
        for item in items[:_MOST_ITEMS]:
            print_line(console, "  ", (f"{item.team}:", "bold"), f" {item.subject} {item.words}")
        if (more := len(items) - _MOST_ITEMS) > 0:
            print_line(console, f"  … and {more} more")


def show_problems(problems: Iterable[Finding], console: Console) -> None:
    """Print problems, those that stop a preview first: the key or the subject, then the mistake."""
    for problem in sorted(problems, key=lambda each: each.level is not Level.MANDATORY):
        mandatory = problem.level is Level.MANDATORY
        word = ("refused", "red") if mandatory else ("warning", "yellow")
        where = problem.path or problem.subject
        print_line(console, word, " ", (f"[{problem.check}]", "bold"), f" {where}")
        print_line(console, f"  {problem.subject}: {problem.message}")
